"""When an object is ready: by its kind, or by what `pulumi.com/waitFor` says; and what cannot be waited for here."""

import json
import re
from dataclasses import dataclass
from typing import Final

from jsonpath_ng import JSONPath
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse

from local.plugins.kubernetes.objects import annotation
from provider.engine.errors import PluginError
from provider.engine.values import Props

__all__ = ["Condition", "JsonPath", "Test", "tests_of", "why_not", "without_controllers"]

# Kinds whose readiness the controllers or the kubelet make, which do not run in the local cloud.
_MADE_ELSEWHERE: Final = frozenset(
    {
        *("DaemonSet", "Deployment", "Ingress", "Job", "PersistentVolumeClaim", "Pod", "ReplicaSet"),
        *("ReplicationController", "Service", "StatefulSet"),
    }
)
_BY_KIND: Final = {"CustomResourceDefinition": "Established", "APIService": "Available"}


@dataclass(frozen=True)
class Condition:
    """`condition=Type[=Status]`: an entry of status.conditions."""

    type: str
    status: str = "True"

    def lacks(self, live: Props) -> str:
        """Say what is missing, in a few words; empty if nothing."""
        conditions = (live.get("status") or {}).get("conditions") or []
        found = next((each for each in conditions if each.get("type", "").lower() == self.type.lower()), None)
        if found is None:
            return f"condition {self.type} is not there yet"
        if str(found.get("status", "")).lower() == self.status.lower():
            return ""
        says = " ".join(str(found[key]) for key in ("reason", "message") if found.get(key))
        return f"condition {self.type} is {found.get('status')}" + (f" ({says})" if says else "")


@dataclass(frozen=True)
class JsonPath:
    """`jsonpath={.status.phase}[=Value]`: something is there, or has a value."""

    text: str
    path: JSONPath
    value: str | None = None

    def lacks(self, live: Props) -> str:
        """Say what is missing, in a few words; empty if nothing."""
        found = [match.value for match in self.path.find(live)]
        if not found:
            return f"{self.text} is not there yet"
        told = [each if isinstance(each, str) else json.dumps(each) for each in found]
        if self.value is None or self.value in told:
            return ""
        return f"{self.text} is {', '.join(told)}, not {self.value}"


Test = Condition | JsonPath


def tests_of(inputs: Props) -> list[Test]:
    """Return what must hold; nothing if nothing is to be waited for."""
    if annotation(inputs, "skipAwait") == "true":
        return []
    asked = annotation(inputs, "waitFor")
    if asked:
        return [_test(text) for text in _texts(asked)]
    kind = str(inputs.get("kind"))
    return [Condition(_BY_KIND[kind])] if kind in _BY_KIND else []


def why_not(tests: list[Test], live: Props) -> str:
    """Say what keeps an object from being ready; empty if nothing."""
    return "; ".join(filter(None, (test.lacks(live) for test in tests)))


def without_controllers(inputs: Props) -> str:
    """Say that readiness is not waited for, where the official plugin would; empty if it would not either."""
    kind, spec = str(inputs.get("kind")), inputs.get("spec") or {}
    official = annotation(inputs, "skipAwait") != "true" and not annotation(inputs, "waitFor")
    idle = (kind == "Job" and spec.get("suspend") is True) or (kind == "Service" and not spec.get("selector"))
    if not official or kind not in _MADE_ELSEWHERE or idle:
        return ""
    return f"{kind} is not waited for: no controllers and no kubelet run in the local cloud, so it stays as applied"


def _texts(asked: str) -> list[str]:
    if not asked.lstrip().startswith("["):
        return [asked]
    try:
        listed = json.loads(asked)
    except ValueError:
        listed = None
    if not isinstance(listed, list) or not listed or not all(isinstance(each, str) for each in listed):
        raise PluginError(f"annotation pulumi.com/waitFor: {asked!r} is not a JSON list of texts")
    return listed


def _test(text: str) -> Test:
    kind, _, rest = text.strip().partition("=")
    if kind == "condition" and rest:
        name, _, status = rest.partition("=")
        return Condition(name, status or "True")
    match = re.fullmatch(r"\{?(?P<path>[^{}]+)\}?(?:=(?P<value>.*))?", rest) if kind == "jsonpath" else None
    if match is None:
        raise PluginError(
            f"annotation pulumi.com/waitFor: {text!r} is neither condition=TYPE[=STATUS] nor jsonpath={{.PATH}}[=VALUE]"
        )
    return _json_path(match["path"].strip(), match["value"])


def _json_path(path: str, value: str | None) -> JsonPath:
    if value is None and "=" in path and "?" not in path:
        path, _, value = path.partition("=")
    try:
        return JsonPath(path, parse("$" + (path if path.startswith((".", "[")) else f".{path}")), value)
    except (JSONPathError, ValueError, TypeError) as error:
        raise PluginError(f"annotation pulumi.com/waitFor: {path!r} is not a JSONPath ({error})") from None
