"""Resource types: hpkit's, and those that the pack checks; any other type would pass every other policy.

Policies don't check what a program does outside resources; reviews of the program do.
"""

from collections.abc import Mapping
from typing import Final

from hpkit.catalog import type_calls
from hpkit.text.formatting import listing
from hpkit_policies.model import Parameter, Policy, Resource, Results, Settings, Violation
from hpkit_policies.rules import iam, network, storage

__all__ = ["POLICIES"]

_PROVIDERS: Final = "pulumi:providers:"
_PACKAGES: Final = frozenset({"aws", "hpkit", "hyperpod", "kubernetes", "pulumi"})
# Types that hpkit doesn't create and that grant nothing by themselves, or that another policy of the pack checks.
_OTHERS: Final = frozenset(
    {
        *("aws:iam/group:Group", "aws:iam/instanceProfile:InstanceProfile", "aws:iam/user:User"),
        "aws:iam/serviceLinkedRole:ServiceLinkedRole",
        *iam.CHECKED,
        *network.CHECKED,
        *storage.CHECKED,
    }
)
# Types of Kubernetes, of any group and version, that act on all users' requests; hpkit creates none. Source:
# Kubernetes, "Dynamic Admission Control", "Mutating Admission Policy", "API aggregation layer", "Certificates API".
_INTERCEPTING: Final[Mapping[str, str]] = {
    "MutatingAdmissionPolicy": "changes objects that others create",
    "MutatingAdmissionPolicyBinding": "changes objects that others create",
    "MutatingWebhookConfiguration": "reads and changes objects that others create",
    "ValidatingWebhookConfiguration": "reads and rejects objects that others create",
    "APIService": "answers requests in place of the API server",
    "CertificateSigningRequest": "can request a certificate for any identity",
}
_TYPES: Final = Parameter(
    "types", "Accepted types (aws:lambda/function:Function) and packages (random), in addition to hpkit's own."
)


def _is_covered(resource: Resource, settings: Settings) -> Results:
    package = resource.type.removeprefix(_PROVIDERS).partition(":")[0]
    if {resource.type, package} & set(settings[_TYPES.name]):
        return
    reason = _reason(resource.type, package)
    if reason:
        yield Violation(
            f"`{resource.name}` has the type {resource.type}, which {reason}",
            f"Replace it with resources that the pack checks, or list the type in `{_TYPES.name}`.",
        )


def _reason(resource_type: str, package: str) -> str | None:
    if package not in _PACKAGES:
        return f"the pack can't check; it supports {listing(sorted(_PACKAGES))}"
    if package == "kubernetes":
        if resource_type.endswith("List"):
            return "contains other resources, which the pack doesn't check"
        return _INTERCEPTING.get(resource_type.rpartition(":")[2].removesuffix("Patch"))
    if (
        package == "aws"
        and not resource_type.startswith(_PROVIDERS)
        and resource_type not in _OTHERS | type_calls().keys()
    ):
        return "hpkit doesn't create, so the pack doesn't check what it grants or runs"
    return None


POLICIES = (
    Policy(
        name="resource-types-covered",
        description="AWS resources have types that hpkit creates or the pack checks, and Kubernetes resources don't "
        "intercept other requests.",
        validate=_is_covered,
        parameters=(_TYPES,),
    ),
)
