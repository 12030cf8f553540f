"""The resources of a Terraform or OpenTofu state, and the steps that remove some from it without destroying them.

It doesn't read configurations. It skips data sources and deposed instances.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpkit.adopt.handover_model import ManagedResource, Step, string
from hpkit.errors import InputError

__all__ = ["read_terraform", "terraform_steps"]

_VERSION = 4
_BACKUP = "terraform-state-before-hpkit.json"
_PULL = "`terraform state pull` (or `tofu state pull`) writes the expected format"
# Attributes that identify the resource itself. Others refer to another one: `role` of an attachment, `cluster_name`.
_OWN = (
    "id",
    "arn",
    "name",
    "bucket",
    "access_entry_arn",
    "association_arn",
    "association_id",
    "cluster_arn",
    "security_group_rule_id",
)
# These identify only a resource of this type; in other types they refer to another resource.
_ONLY = {"bucket": "aws_s3_bucket", "cluster_arn": "awscc_sagemaker_cluster"}
_KEYS = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')


def read_terraform(text: str, *, file: str = "the Terraform state") -> list[ManagedResource]:
    """Return the managed resources of a state file, or of `terraform show -json`.

    Both forms are documented: developer.hashicorp.com/terraform/internals/json-format, and version 4 of the state,
    which OpenTofu writes as well. Raises InputError for anything else, and for a state without resources.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InputError(f"{file}: not JSON ({error}); {_PULL}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file}: not a Terraform state; {_PULL}")
    if "encrypted_data" in data:
        raise InputError(f"{file}: encrypted by OpenTofu; use `tofu state pull`, which decrypts it")
    if "planned_values" in data:
        raise InputError(f"{file}: a plan, not a state; `terraform show -json` without a file shows the state")
    try:
        owned = list(_shown(data) if "format_version" in data else _stored(data, file))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: not a valid Terraform state ({error!r}); {_PULL}") from None
    if not owned:
        raise InputError(
            f"{file}: contains no managed resource; use the state of the root module that created the platform"
        )
    return sorted(owned, key=lambda each: each.address)


def _stored(data: Mapping[str, Any], file: str) -> Iterator[ManagedResource]:
    version = data.get("version")
    if version != _VERSION:
        raise InputError(
            f"{file}: state version {version!r} instead of {_VERSION}; {_PULL} with Terraform 0.12 or later"
        )
    for resource in data.get("resources", ()):
        if resource["mode"] != "managed":
            continue
        place = ".".join(part for part in (resource.get("module", ""), resource["type"], resource["name"]) if part)
        for instance in resource["instances"]:
            if "deposed" not in instance:
                yield _owned(
                    place + _key(instance.get("index_key")), resource["type"], instance.get("attributes") or {}
                )


def _shown(data: Mapping[str, Any]) -> Iterator[ManagedResource]:
    waiting = [data["values"]["root_module"]] if data.get("values") else []
    while waiting:
        module = waiting.pop()
        waiting += module.get("child_modules", ())
        for resource in module.get("resources", ()):
            if resource["mode"] == "managed" and "deposed_key" not in resource:
                yield _owned(resource["address"], resource["type"], resource.get("values") or {})


def _key(index: object) -> str:
    """Return the end of an instance's address; a key is quoted as HCL quotes a string."""
    if index is None:
        return ""
    if isinstance(index, str):
        quoted = json.dumps(index, ensure_ascii=False)
        return "[" + quoted.replace("${", "$${").replace("%{", "%%{") + "]"
    return f"[{index}]"


def _owned(address: str, resource_type: str, attributes: Mapping[str, Any]) -> ManagedResource:
    own = {string(attributes, key) for key in _OWN if resource_type.startswith(_ONLY.get(key, ""))}
    own |= set(_composed(resource_type, attributes))
    return ManagedResource("terraform", address, resource_type, frozenset(own - {""}))


# The ids that `pulumi import` and `terraform import` take, where the state's own `id` is another one. Source: each
# type's documentation (registry.terraform.io/providers/hashicorp/aws/latest/docs/resources, "Import").
_COMPOSED: dict[str, tuple[str, ...]] = {
    "aws_eks_addon": ("cluster_name", ":", "addon_name"),
    "awscc_eks_addon": ("cluster_name", ":", "addon_name"),
    "aws_eks_access_entry": ("cluster_name", ":", "principal_arn"),
    "awscc_eks_access_entry": ("cluster_name", ":", "principal_arn"),
    "aws_eks_access_policy_association": ("cluster_name", "#", "principal_arn", "#", "policy_arn"),
    "aws_eks_pod_identity_association": ("cluster_name", ",", "association_id"),
    "awscc_eks_pod_identity_association": ("cluster_name", ",", "association_id"),
    "aws_iam_role_policy": ("role", ":", "name"),
    "aws_iam_role_policy_attachment": ("role", "/", "policy_arn"),
    "aws_route": ("route_table_id", "_", "destination_cidr_block"),
    "aws_route_table_association": ("subnet_id", "/", "route_table_id"),
    "awscc_sagemaker_cluster": ("cluster_name",),
    "aws_s3_object": ("bucket", "/", "key"),
    "awscc_s3_bucket": ("bucket_name",),
    "awscc_iam_role": ("role_name",),
    "helm_release": ("namespace", "/", "name"),
}


def _composed(resource_type: str, attributes: Mapping[str, Any]) -> Iterator[str]:
    if resource_type in _COMPOSED:
        parts = [part if len(part) == 1 else string(attributes, part) for part in _COMPOSED[resource_type]]
        if all(parts):
            yield "".join(parts)
    if resource_type in ("null_resource", "terraform_data"):
        yield from _quota(attributes)
    if resource_type in ("kubernetes_manifest", "kubectl_manifest"):
        yield from _manifest(attributes)
    elif resource_type.startswith("kubernetes_"):
        for metadata in attributes.get("metadata") or ():
            yield string(metadata, "name")


def _manifest(attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yield `kind/name` of a generic Kubernetes manifest."""
    manifest = attributes.get("manifest")
    if isinstance(manifest, dict):
        yield f"{manifest['kind']}/{manifest['metadata']['name']}"
    elif string(attributes, "kind"):
        yield f"{string(attributes, 'kind')}/{string(attributes, 'name')}"


def _quota(attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yield quota and team of a resource that runs the AWS CLI for a quota, from its triggers."""
    triggers = attributes.get("triggers") or attributes.get("triggers_replace") or {}
    if not isinstance(triggers, dict) or "compute_quota_target" not in triggers:
        return
    yield string(triggers, "name")
    try:
        target = json.loads(triggers["compute_quota_target"])
    except (TypeError, ValueError):
        return
    if isinstance(target, dict):
        yield string(target, "TeamName")


def terraform_steps(released: Sequence[ManagedResource], *, kept: Sequence[ManagedResource]) -> list[Step]:
    """Return the steps that release these from Terraform, in this order; kept: the other resources in its state.

    `state rm` destroys nothing and runs no provisioner (developer.hashicorp.com/terraform/cli/commands/state/rm). It
    comes after the import: until then Terraform is the only owner, so a failed import does no harm. It comes before the
    first `pulumi up`. In between, both tools have a record of the resource but neither acts; afterward, a Terraform
    plan would undo Pulumi's changes. The blocks are removed last: while they remain, no one may apply, because a plan
    would create the resources again.
    """
    if not released:
        return []
    steps = [
        Step(
            "before import",
            "Back up Terraform's state, and stop all applies from now on. First fix what the plan shows.",
            (
                f"terraform state pull > {_BACKUP}",
                "terraform plan",
            ),
        ),
        Step(
            "after import",
            f"Terraform forgets what Pulumi owns and destroys nothing. To undo this, run `terraform state push "
            f"-force {_BACKUP}`",
            tuple(f"terraform state rm {shlex.quote(each.address)}" for each in released),
        ),
    ]
    blocks = sorted({_block(each) for each in released})
    shared = {_block(each) for each in kept} & set(blocks)
    say = ["Remove these blocks from the configuration, with their inputs (count, for_each, variables)."]
    say += ["Replace references to them with a value or a data source:"]
    say += [f"  {block}{' (only the instances above)' if block in shared else ''}" for block in blocks]
    steps.append(Step("after import", "\n".join(say)))
    whole = [block for block in blocks if block not in shared]
    if whole:
        steps.append(Step("after import", _alternative(whole)))
    steps.append(
        Step("after import", "The plan must show that nothing is added, changed or destroyed.", ("terraform plan",))
    )
    return steps


def _block(owned: ManagedResource) -> str:
    return _KEYS.sub("", owned.address)


def _alternative(blocks: Sequence[str]) -> str:
    """Return the same as `removed` blocks, which take no instance keys (…/terraform/language/state/remove)."""
    say = ["Or, in place of `state rm` and reviewed as code (Terraform 1.7 or later), put these where the blocks were:"]
    say += [f"  removed {{\n    from = {block}\n    lifecycle {{ destroy = false }}\n  }}" for block in blocks]
    return "\n".join(say)
