"""hpkit's resources as documents that scanners read: Terraform's language for AWS, manifests for Kubernetes.

A recording of the program has the values. Pulumi's AWS provider is bridged from Terraform's, so types and arguments are
the same under other names. Invented values of a recording (IDs, ARNs) become references again, which show a scanner
what is connected. Everything that can't be converted is listed in NOT_CONVERTED.
"""

import json
import re
from dataclasses import dataclass

import yaml

__all__ = ["BETWEEN", "NOT_CONVERTED", "SINGULAR", "converted", "manifests", "terraform"]

# Types of resources that no scanner here supports in any form, with the reason.
NOT_CONVERTED = {
    "hyperpod:": "no provider of Terraform that scanners know has HyperPod: the policy pack judges it",
    "hpkit:": "components and guards: nothing at AWS",
    "pulumi:": "the stack and its providers",
    "kubernetes:apps/v1:DeploymentPatch": "a few fields of a Deployment that an add-on of AWS's brings",
    "kubernetes:helm.sh/v3:Release": "its objects come from a chart, which hpkit pins by digest and does not write",
}
# Separates the stack from a resource's own name.
BETWEEN = "--"
# Lists with a plural name in Pulumi, and the name of the repeated block in Terraform.
SINGULAR = {
    "rules": "rule",
    "tags": "tags",
    "accessScopes": "access_scope",
    "filters": "filter",
    "noncurrentVersionExpirations": "noncurrent_version_expiration",
}
# Arguments that are maps with arbitrary keys, not blocks.
MAPS = ("tags", "labels")
# Arguments that only the engine or Pulumi uses.
_DROPPED = ("tagsAll", "region")


def converted(recordings):
    """Return Terraform's document and Kubernetes' manifests for some recordings, and the types that are in neither."""
    aws, objects, neither = {}, {}, set()
    for recording in recordings:
        references = _references(recording)
        for resource in recording.resources.values():
            if any(resource.type.startswith(prefix) for prefix in NOT_CONVERTED):
                neither.add(resource.type)
            elif resource.type.startswith("kubernetes:"):
                document = _manifest(resource)
                key = (document["kind"], document["metadata"].get("namespace", ""), document["metadata"]["name"])
                objects[key] = document
            else:
                name = f"{recording.plan.stack}{BETWEEN}{_name(resource.name)}"
                aws.setdefault(_type(resource.type), {})[name] = _arguments(resource.inputs, references)
    return aws, [objects[key] for key in sorted(objects)], neither


def terraform(resources):
    """Return the text of a file `main.tf`, because checkov doesn't read Terraform in JSON."""
    return "\n".join(
        "\n".join([f'resource "{resource_type}" "{name}" {{', *_lines(arguments, "  "), "}", ""])
        for resource_type, named in sorted(resources.items())
        for name, arguments in sorted(named.items())
    )


def _lines(arguments, indent):
    for key, value in arguments.items():
        # Everything except maps with arbitrary keys is a block, one for each item.
        blocks = [value] if isinstance(value, dict) and key not in MAPS else value
        if isinstance(blocks, list) and blocks and all(isinstance(each, dict) for each in blocks):
            for block in blocks:
                yield f"{indent}{key} {{"
                yield from _lines(block, f"{indent}  ")
                yield f"{indent}}}"
        else:
            yield f"{indent}{key} = {_expression(value)}"


def _expression(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_expression(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_expression(each) for each in value) + "]"
    if isinstance(value, _Reference):
        return value.text
    if isinstance(value, str):
        return json.dumps(value).replace("${", "$${")
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


@dataclass(frozen=True)
class _Reference:
    """An attribute of another resource."""

    text: str


def manifests(objects):
    """Return the text of a file with manifests."""
    return yaml.safe_dump_all(objects, sort_keys=True)


def _references(recording):
    """Return the reference for each value that the recording has invented."""
    documents = {}
    for resource in recording.resources.values():
        if resource.type.startswith("aws:") and resource.custom:
            place = f"{_type(resource.type)}.{recording.plan.stack}{BETWEEN}{_name(resource.name)}"
            for attribute, value in resource.made.items():
                if isinstance(value, str) and len(value) > 3:
                    documents.setdefault(value, _Reference(f"{place}.{_snake(attribute)}"))
    return documents


def _type(token):
    """Return Terraform's type, which Pulumi's names follow, except for modules of EC2, Prometheus, and S3's objects."""
    module, _, name = token.removeprefix("aws:").partition("/")
    name = _snake(name.partition(":")[0])
    prefixes = {"ec2": "", "amp": "prometheus_"}
    return "aws_s3_object" if name == "bucket_objectv2" else f"aws_{prefixes.get(module, f'{module}_')}{name}"


def _name(name):
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", name)


def _arguments(value, references):
    if isinstance(value, dict):
        return {
            SINGULAR.get(key, _snake(key)): member if key == "tags" else _arguments(member, references)
            for key, member in value.items()
            if key not in _DROPPED
        }
    if isinstance(value, (list, tuple)):
        return [_arguments(each, references) for each in value]
    # An IAM document stays JSON, which scanners parse.
    if isinstance(value, str) and not value.startswith("{"):
        return references.get(value, value)
    return value


def _manifest(resource):
    inputs = json.loads(json.dumps(resource.inputs, default=str))
    kind = resource.type.rpartition(":")[2].removesuffix("Patch")
    inputs.setdefault("kind", kind)
    inputs.setdefault("apiVersion", resource.type.removeprefix("kubernetes:").rpartition(":")[0].removeprefix("core/"))
    return inputs
