"""When an object is ready: by its kind, or by what `pulumi.com/waitFor` says; and what nothing here makes ready.

What is waited for is what the official plugin waits for (pulumi-kubernetes v4, provider/pkg/await); a Deployment's
numbers are those of `kubectl rollout status`. docs/reference/fake-kubernetes-plugin.md says what differs.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from jsonpath_ng import JSONPath
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.ext.parser import parse

from hpkit_local.plugins.kubernetes.objects import annotation
from hpkit_provider.engine.errors import ChangeFailedError, PluginError
from hpkit_provider.engine.values import Props

__all__ = ["Condition", "JsonPath", "Test", "has_endpoints", "tests_of", "unserved", "waited_for", "why_not"]


class Test(Protocol):
    """Something that must hold of an object."""

    def lacks(self, live: Props) -> str:
        """Say what is missing, in a few words, empty if nothing; ChangeFailedError for what will never hold."""


@dataclass(frozen=True)
class Condition:
    """`condition=Type[=Status]`: an entry of status.conditions."""

    type: str
    status: str = "True"

    def lacks(self, live: Props) -> str:
        """Say what is missing, in a few words; empty if nothing."""
        found = _condition(live, self.type)
        if found is None:
            return f"condition {self.type} is not there yet"
        if str(found.get("status", "")).lower() == self.status.lower():
            return ""
        says = _says(found)
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


@dataclass(frozen=True)
class Observed:
    """The controller has seen the last change: what it says in the status is about that."""

    def lacks(self, live: Props) -> str:
        """Say that the controller has not."""
        seen = _status(live).get("observedGeneration", 0)
        return "" if seen >= live["metadata"].get("generation", 0) else "its controller has not taken it up yet"


@dataclass(frozen=True)
class Pods:
    """As many pods as are wanted are what each field of the status counts."""

    words: Mapping[str, str]
    wanted: tuple[str, str] = ("spec", "replicas")

    def lacks(self, live: Props) -> str:
        """Say the first number that differs."""
        part, name = self.wanted
        wanted = (live.get(part) or {}).get(name, 1)
        for field, word in self.words.items():
            found = _status(live).get(field, 0)
            if found > wanted:
                return f"pods of before that are still there: {found - wanted}"
            if found < wanted:
                return f"{found} of {wanted} pods are {word}"
        return ""


@dataclass(frozen=True)
class Revision:
    """All pods of a StatefulSet are of one revision; with OnDelete, deleting the old ones is the user's."""

    def lacks(self, live: Props) -> str:
        """Say which revision is being left for which."""
        strategy = ((live.get("spec") or {}).get("updateStrategy") or {}).get("type")
        now, then = (_status(live).get(key) for key in ("currentRevision", "updateRevision"))
        if strategy == "OnDelete" or (now and now == then):
            return ""
        return f"its pods go from revision {now} to {then}"


@dataclass(frozen=True)
class PodReady:
    """A pod is scheduled, initialized and ready, or has ended well."""

    def lacks(self, live: Props) -> str:
        """Say what keeps a pod, as the scheduler and its containers tell it."""
        status = _status(live)
        phase = status.get("phase", "Pending")
        if phase == "Succeeded":
            return ""
        waits = [_says(found) for name in ("PodScheduled", "Initialized", "Ready") if (found := _unmet(live, name))]
        told = "; ".join([*_container_troubles(status), *waits[:1]])
        if phase == "Failed":
            raise ChangeFailedError(f"it failed: {told or status.get('reason', 'no reason given')}")
        ready = Condition("Ready").lacks(live)
        return f"{phase}: {told or 'its containers are being started'}" if ready else ""


@dataclass(frozen=True)
class JobComplete:
    """A Job has completed; one that failed will not."""

    def lacks(self, live: Props) -> str:
        """Say how many of its pods are where."""
        failed = _condition(live, "Failed")
        if failed is not None and failed.get("status") == "True":
            raise ChangeFailedError(f"it failed: {_says(failed)}")
        if not Condition("Complete").lacks(live):
            return ""
        counts = ", ".join(f"{_status(live).get(key, 0)} {key}" for key in ("active", "succeeded", "failed"))
        suspended = "; it is suspended" if (live.get("spec") or {}).get("suspend") else ""
        return f"it has not completed ({counts}){suspended}"


@dataclass(frozen=True)
class QuotaCounted:
    """A ResourceQuota is in force: its status repeats its limits."""

    def lacks(self, live: Props) -> str:
        """Say that it is not."""
        stated = (live.get("spec") or {}).get("hard")
        return "" if stated == _status(live).get("hard") else "its limits are not in force yet"


@dataclass(frozen=True)
class TokenFilled:
    """A Secret for a service account's token holds it."""

    def lacks(self, live: Props) -> str:
        """Say that it does not."""
        waits = live.get("type") == "kubernetes.io/service-account-token" and not live.get("data")
        return "it holds no token yet" if waits else ""


@dataclass(frozen=True)
class Phase:
    """`status.phase` is one of these."""

    phases: tuple[str, ...]

    def lacks(self, live: Props) -> str:
        """Say which it is."""
        phase = _status(live).get("phase", "not known yet")
        return "" if phase in self.phases else f"its phase is {phase}, not {' or '.join(self.phases)}"


_SCHEDULED: Final = ("status", "desiredNumberScheduled")
# By group and kind, what the official plugin waits for; a kind that is not here is ready when it is applied.
_BY_KIND: Final[dict[tuple[str, str], tuple[Test, ...]]] = {
    ("", "PersistentVolume"): (Phase(("Available", "Bound")),),
    ("", "PersistentVolumeClaim"): (Phase(("Bound",)),),
    ("", "Pod"): (PodReady(),),
    ("", "ReplicationController"): (Pods({"availableReplicas": "available"}),),
    ("", "ResourceQuota"): (QuotaCounted(),),
    ("", "Secret"): (TokenFilled(),),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (Condition("Established"),),
    ("apiregistration.k8s.io", "APIService"): (Condition("Available"),),
    ("apps", "DaemonSet"): (
        Observed(),
        Pods(
            {
                "currentNumberScheduled": "scheduled",
                "updatedNumberScheduled": "updated",
                "numberReady": "ready",
                "numberAvailable": "available",
            },
            wanted=_SCHEDULED,
        ),
    ),
    ("apps", "Deployment"): (
        Observed(),
        Pods({"updatedReplicas": "updated", "replicas": "there", "availableReplicas": "available"}),
        Condition("Available"),
    ),
    ("apps", "StatefulSet"): (Observed(), Pods({"replicas": "there", "readyReplicas": "ready"}), Revision()),
    ("batch", "Job"): (JobComplete(),),
}
# What the official plugin waits for and nothing in the local cloud makes.
_UNSERVED: Final = {
    "Ingress": ("ingress controller", "address"),
    "LoadBalancer": ("load balancer controller", "address"),
    "PersistentVolumeClaim": ("volume provisioner", "volume"),
}


def tests_of(inputs: Props) -> list[Test]:
    """Return what must hold; nothing if nothing is to be waited for."""
    if annotation(inputs, "skipAwait") == "true":
        return []
    asked = annotation(inputs, "waitFor")
    if asked:
        return [_test(text) for text in _texts(asked)]
    group = str(inputs.get("apiVersion")).rpartition("/")[0]
    return list(_BY_KIND.get((group, str(inputs.get("kind"))), ()))


def why_not(tests: list[Test], live: Props) -> str:
    """Say what keeps an object from being ready, empty if nothing; ChangeFailedError if it will never be."""
    return "; ".join(filter(None, (test.lacks(live) for test in tests)))


def has_endpoints(inputs: Props, live: Props) -> bool:
    """Whether a Service is waited for until its pods are ready: one that selects pods and has an address of its own."""
    if live.get("kind") != "Service" or not waited_for(inputs):
        return False
    spec = live.get("spec") or {}
    return bool(spec.get("selector")) and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName"


def unserved(inputs: Props, live: Props) -> str:
    """Say what an object gets on AWS and nothing here gives it, so that it is not waited for; empty if nothing.

    Of a claim for a volume that holds only where its class makes one, which the caller has to look up.
    """
    kind = str(inputs.get("kind"))
    if kind == "Service":
        kind = str((live.get("spec") or {}).get("type"))
    if not waited_for(inputs) or kind not in _UNSERVED:
        return ""
    controller, thing = _UNSERVED[kind]
    return (
        f"no {controller} runs in the local cloud, so it gets no {thing}, which is not waited for; "
        "on AWS `pulumi up` waits until it has one"
    )


def waited_for(inputs: Props) -> bool:
    """Whether nothing is stated that takes the place of the wait for its kind."""
    return annotation(inputs, "skipAwait") != "true" and not annotation(inputs, "waitFor")


def _status(live: Props) -> Props:
    return live.get("status") or {}


def _condition(live: Props, name: str) -> Props | None:
    conditions: list[Props] = _status(live).get("conditions") or []
    return next((each for each in conditions if each.get("type", "").lower() == name.lower()), None)


def _unmet(live: Props, name: str) -> Props | None:
    found = _condition(live, name)
    return found if found is not None and found.get("status") != "True" else None


def _says(condition: Props) -> str:
    return " ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))


def _container_troubles(status: Props) -> list[str]:
    """Say why containers wait, or how they ended."""
    told = []
    for each in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = each.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        last = (each.get("lastState") or {}).get("terminated") or {}
        if waiting.get("reason", "ContainerCreating") != "ContainerCreating":
            told.append(f"container {each['name']}: {_says(waiting)}")
        failed = [found for found in (ended, last) if found.get("exitCode")]
        told += [f"container {each['name']} ended with exit code {end['exitCode']}: {_says(end)}" for end in failed]
    return told


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
