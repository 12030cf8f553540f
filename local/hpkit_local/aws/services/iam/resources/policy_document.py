"""An IAM policy from statements: what `aws.iam.get_policy_document` makes without a call."""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.function import Function
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS"]

_LISTS = {
    "actions": "Action",
    "notActions": "NotAction",
    "resources": "Resource",
    "notResources": "NotResource",
}
_PRINCIPALS = {"principals": "Principal", "notPrincipals": "NotPrincipal"}


def _policy_document(_call: Calls, args: Props) -> Props:
    """Return the document as text; statements of sources come first, an override replaces the same `sid`."""
    statements: list[dict[str, Any]] = []
    for text in args.get("sourcePolicyDocuments", []):
        statements += _statements(text)
    statements += [_statement(each) for each in args.get("statements", [])]
    for text in args.get("overridePolicyDocuments", []):
        overrides = _statements(text)
        sids = {each["Sid"] for each in overrides if each.get("Sid")}
        statements = [each for each in statements if each.get("Sid") not in sids] + overrides
    document: dict[str, Any] = {"Version": args.get("version", "2012-10-17")}
    if args.get("policyId"):
        document["Id"] = args["policyId"]
    document["Statement"] = statements
    told = json.dumps(document, indent=2)
    minified = json.dumps(document, separators=(",", ":"))
    return {"id": str(zlib.crc32(told.encode())), "json": told, "minifiedJson": minified}


def _statements(text: str) -> list[dict[str, Any]]:
    found = json.loads(text).get("Statement", [])
    return found if isinstance(found, list) else [found]


def _statement(stated: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"Sid": stated["sid"]} if stated.get("sid") else {}
    made["Effect"] = stated.get("effect", "Allow")
    for name, member in _LISTS.items():
        if stated.get(name):
            made[member] = _short(stated[name])
    for name, member in _PRINCIPALS.items():
        if stated.get(name):
            made[member] = _principal(stated[name])
    for condition in stated.get("conditions", []):
        test = made.setdefault("Condition", {}).setdefault(condition["test"], {})
        test[condition["variable"]] = _short(condition["values"])
    return made


def _principal(stated: list[dict[str, Any]]) -> Any:
    if any(each["type"] == "*" for each in stated):
        return "*"
    return {each["type"]: _short(each["identifiers"]) for each in stated}


def _short(values: list[str]) -> Any:
    return values[0] if len(values) == 1 else sorted(values, reverse=True)


_TAKES = ("policyId", "version", "statements", "sourcePolicyDocuments", "overridePolicyDocuments")
FUNCTIONS: Final = (Function("aws:iam/getPolicyDocument:getPolicyDocument", "iam", _TAKES, "", _policy_document),)
