"""An organization without findings, so that a test breaks exactly one rule."""

import copy
import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from hpkit.checks import Finding, check
from hpkit.config import Organization, parse, read_text
from hpkit.plan.derive import derive
from hpkit.plan.model import Plan
from hpkit.project import project_root

TODAY = datetime.date(2026, 11, 21)
# For `clusterPolicy`: two priority classes for the example handson, which has none.
RANKED: dict[str, Any] = {
    "taskPrioritization": "Rank",
    "priorityClasses": [{"name": "training", "weight": 80}, {"name": "experiment", "weight": 40}],
}

_BASE: dict[str, Any] = {
    "organization": "acme",
    "clusterPolicy": {"idleResourceSharing": "Enabled"},
    "teams": [],
    "environments": {
        "dev": {
            "region": "us-west-2",
            "account": "123456789012",
            "network": {
                "vpcCidr": "10.192.0.0/16",
                "zones": [
                    {"availabilityZone": "us-west-2a", "nodeCidr": "10.1.0.0/16"},
                    {"availabilityZone": "us-west-2b", "nodeCidr": "10.2.0.0/16"},
                ],
            },
            "eks": {"version": "1.35", "endpoint": {"public": True, "publicCidrs": ["52.10.20.0/24"]}},
            "cluster": {
                "name": "acme",
                "instanceGroups": [
                    {
                        "name": "gpu",
                        "instanceType": "ml.g5.12xlarge",
                        "instanceCount": 4,
                        "availabilityZone": "us-west-2a",
                    }
                ],
            },
            "governance": {"allocations": {}},
        }
    },
}


def group(name: str, instance_type: str, count: int, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "instanceType": instance_type,
        "instanceCount": count,
        "availabilityZone": "us-west-2a",
        **more,
    }


def team(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "fairShareWeight": 50, "members": [f"arn:aws:iam::123456789012:role/{name}"], **more}


def organization(
    *,
    teams: list[dict[str, Any]] | None = None,
    groups: list[dict[str, Any]] | None = None,
    allocations: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = None,
    top: dict[str, Any] | None = None,
) -> dict[str, Any]:
    data = copy.deepcopy(_BASE)
    dev = data["environments"]["dev"]
    if teams is not None:
        data["teams"] = teams
    if groups is not None:
        dev["cluster"]["instanceGroups"] = groups
    if allocations is not None:
        dev["governance"]["allocations"] = allocations
    dev.update(environment or {})
    data.update(top or {})
    return data


def split(data: dict[str, Any]) -> dict[str, Any]:
    """Return the organization with the governance of `dev` in a separate environment."""
    data = copy.deepcopy(data)
    dev, stack = data["environments"]["dev"], f"{data['organization']}-dev"
    lustre = dev.get("storage", {}).get("lustre", {})
    shared = {"storage": {"lustre": {**lustre, "existing": "fs-0123456789abcdef0"}}} if lustre else {}
    lustre.pop("teams", None)
    data["environments"]["governance"] = {
        **shared,
        "region": dev["region"],
        "account": dev["account"],
        "eks": {"version": dev["eks"]["version"], "existing": {"name": stack}},
        "cluster": {**dev["cluster"], "existing": True},
        "governance": {**dev.pop("governance"), "policyName": stack},
    }
    return data


def plain(value: Any) -> Any:
    """Return what was read from a file as plain lists and maps, which tests can change."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, tuple) else value


def yaml_of(data: Any) -> str:
    """Return a document as YAML; libyaml, if installed, takes a tenth of the time."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True))


def text_of(data: Any) -> bytes:
    return yaml_of(data).encode()


def typed(data: Any) -> Organization:
    parsed = parse(read_text(text_of(data)))
    assert parsed.organization is not None, parsed.problems
    return parsed.organization


def findings(data: Any) -> list[Finding]:
    return findings_in(text_of(data))


def findings_in(content: bytes, *, today: datetime.date = TODAY) -> list[Finding]:
    return check(parse(read_text(content)), file="acme.yaml", today=today)


def rules(data: Any) -> set[str]:
    return {finding.rule for finding in findings(data)}


def copy_of_handson(folder: Path, change: Callable[[str], str]) -> Path:
    """Return a project whose only organization is the example handson, changed as text."""
    (folder / "stacks").mkdir()
    for name in ("Pulumi.yaml", "stacks/Pulumi.handson-dev.yaml", "stacks/handson.yaml"):
        text = (project_root() / name).read_text(encoding="utf-8")
        (folder / name).write_text(change(text) if name.endswith("handson.yaml") else text, encoding="utf-8")
    return folder


def ranked_handson(*groups: dict[str, Any], **governance: Any) -> Plan:
    """Return the plan of handson-dev with more groups, a policy that ranks jobs by two classes, and team folders."""
    data = yaml.safe_load((project_root() / "stacks" / "handson.yaml").read_text(encoding="utf-8"))
    data["clusterPolicy"] |= RANKED
    dev = data["environments"]["dev"]
    dev["governance"] |= governance
    dev["cluster"]["instanceGroups"] += groups
    dev["storage"] = {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}}
    return derive(typed(data), "dev")


def without_account(text: str) -> str:
    """Return an organization file whose environments have no account."""
    return re.sub(r"\n    account: .*", "", text)
