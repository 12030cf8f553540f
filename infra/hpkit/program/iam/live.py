"""An account's ARNs, and the AWS resources in a stack's state by ARN: what policies can name once it exists."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["AwsAccount", "LiveResource", "account_of", "live_resources", "managed_policy"]


@dataclass(frozen=True, slots=True)
class AwsAccount:
    """An account in one region: partition (`aws`), region, and the account's 12-digit id."""

    partition: str
    region: str
    id: str

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account in this region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.id}:{resource}"

    def role_arn(self, name: str) -> str:
        """Return the ARN of a role of this account."""
        return f"arn:{self.partition}:iam::{self.id}:role/{name}"

    def values(self) -> dict[str, str]:
        """Return its values for the templates of ARNs."""
        return {"partition": self.partition, "region": self.region, "account": self.id}


def managed_policy(account: AwsAccount, name: str) -> str:
    """Return the ARN of a policy that AWS manages."""
    return f"arn:{account.partition}:iam::aws:policy/{name}"


# Types whose state has an id and no ARN: the resource type in their ARN (Service Authorization Reference, Amazon EC2).
_EC2_TYPES: Final = {"aws:ec2/eip:Eip": "elastic-ip", "aws:ec2/natGateway:NatGateway": "natgateway"}


@dataclass(frozen=True, slots=True)
class LiveResource:
    """One resource of the state: its ARN, and its tags."""

    arn: str
    tags: Mapping[str, str]


def live_resources(exported: Mapping[str, Any], account: AwsAccount) -> tuple[LiveResource, ...]:
    """Return the resources of an exported state (`pulumi stack export`) that have an ARN, sorted by ARN.

    Raises TypeError or KeyError for anything but an exported state.
    """
    by_arn = {}
    for resource in _resources(exported):
        arn = _arn(resource, account)
        if arn is not None:
            outputs = resource.get("outputs") or {}
            by_arn[arn] = LiveResource(arn, _tags(outputs))
    return tuple(by_arn[arn] for arn in sorted(by_arn))


def account_of(exported: Mapping[str, Any]) -> str | None:
    """Return the account of the first resource of the state that names one."""
    for resource in _resources(exported):
        arn = _stated_arn(resource)
        if arn is not None and arn.split(":")[4].isdigit():
            return arn.split(":")[4]
    return None


def _resources(exported: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    deployment = exported["deployment"] or {}
    return (
        resource
        for resource in deployment.get("resources") or ()
        if resource.get("custom") and resource["type"].startswith(("aws:", "hyperpod:"))
    )


def _arn(resource: Mapping[str, Any], account: AwsAccount) -> str | None:
    stated = _stated_arn(resource)
    if stated is not None:
        return stated
    ec2 = _EC2_TYPES.get(resource["type"])
    return account.arn("ec2", f"{ec2}/{resource['id']}") if ec2 and resource.get("id") else None


def _stated_arn(resource: Mapping[str, Any]) -> str | None:
    outputs = resource.get("outputs") or {}
    texts = (outputs.get("arn"), resource.get("id"))
    return next((text for text in texts if isinstance(text, str) and text.startswith("arn:")), None)


def _tags(outputs: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the tags: a mapping for `aws`, where `tagsAll` has the provider's too, a list of pairs for `hyperpod`."""
    tags = outputs.get("tagsAll") or outputs.get("tags") or {}
    if isinstance(tags, Mapping):
        return {str(key): str(value) for key, value in tags.items()}
    return {str(tag["key"]): str(tag["value"]) for tag in tags}
