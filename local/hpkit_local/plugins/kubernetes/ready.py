"""Readiness of an object: a Deployment, a CustomResourceDefinition, or what `pulumi.com/waitFor` names.

These are what the program registers and the official plugin waits for (pulumi-kubernetes v4, provider/pkg/await). A
Deployment's numbers are those of `kubectl rollout status`. docs/internals/fake-plugins.md lists differences.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from hpkit.plan.pods import claims_of
from hpkit_local.kubernetes.api import ApiResource
from hpkit_local.plugins.kubernetes.api import ApiError, RetryingApi
from hpkit_local.plugins.kubernetes.objects import LiveObject, annotation
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import CancelledError, ChangeFailedError, InitFailedError, PluginError
from hpkit_provider.engine.values import Props

__all__ = ["Condition", "Readiness", "Related", "tests_of", "why"]

_FIRST, _MOST_SECONDS = 0.1, 0.3
_LAST_QUESTION_SECONDS = 5.0


class Test(Protocol):
    """A condition that an object must meet."""

    def lacks(self, live: Props) -> str:
        """Return what is missing in a few words, or "". Raises ChangeFailedError for what will never be met."""


@dataclass(frozen=True)
class Condition:
    """`condition=Type[=Status]`: an entry of status.conditions."""

    type: str
    status: str = "True"

    def lacks(self, live: Props) -> str:
        """Return what is missing in a few words, or ""."""
        condition = _condition(live, self.type)
        if condition is None:
            return f"condition {self.type} doesn't exist yet"
        if str(condition.get("status", "")).lower() == self.status.lower():
            return ""
        says = _says(condition)
        return f"condition {self.type} is {condition.get('status')}" + (f" ({says})" if says else "")


@dataclass(frozen=True)
class Observed:
    """The controller has processed the last change, so its status is up to date."""

    def lacks(self, live: Props) -> str:
        """Return that the controller hasn't."""
        seen = _status(live).get("observedGeneration", 0)
        return "" if seen >= live["metadata"].get("generation", 0) else "its controller hasn't processed it yet"


@dataclass(frozen=True)
class Pods:
    """Each field of the status counts as many pods as desired."""

    words: Mapping[str, str]

    def lacks(self, live: Props) -> str:
        """Return the first number that differs."""
        replicas = (live.get("spec") or {}).get("replicas", 1)
        for field, word in self.words.items():
            count = _status(live).get(field, 0)
            if count > replicas:
                return f"old pods still running: {count - replicas}"
            if count < replicas:
                return f"{count} of {replicas} pods are {word}"
        return ""


@dataclass(frozen=True)
class PodReady:
    """A pod is scheduled, initialized and ready, or has ended well."""

    def lacks(self, live: Props) -> str:
        """Return what blocks a pod, as reported by the scheduler and its containers."""
        status = _status(live)
        phase = status.get("phase", "Pending")
        if phase == "Succeeded":
            return ""
        waits = [_says(found) for name in ("PodScheduled", "Initialized", "Ready") if (found := _unmet(live, name))]
        reasons = "; ".join([*_container_troubles(status), *waits[:1]])
        if phase == "Failed":
            raise ChangeFailedError(f"it failed: {reasons or status.get('reason', 'no reason given')}")
        ready = Condition("Ready").lacks(live)
        return f"{phase}: {reasons or 'its containers are being started'}" if ready else ""


# By group and kind; a kind that is not here is ready when it is applied.
_BY_KIND: Final[dict[tuple[str, str], tuple[Test, ...]]] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (Condition("Established"),),
    ("apps", "Deployment"): (
        Observed(),
        Pods({"updatedReplicas": "updated", "replicas": "there", "availableReplicas": "available"}),
        Condition("Available"),
    ),
}


def tests_of(inputs: Props) -> tuple[Test, ...]:
    """Return the conditions to wait for; nothing if it doesn't wait."""
    if annotation(inputs, "skipAwait") == "true":
        return ()
    if asked := annotation(inputs, "waitFor"):
        return (_condition_of(asked),)
    group = str(inputs.get("apiVersion")).rpartition("/")[0]
    return _BY_KIND.get((group, str(inputs.get("kind"))), ())


def why_not(tests: tuple[Test, ...], live: Props) -> str:
    """Return what prevents an object from being ready, or "". Raises ChangeFailedError if it will never be ready."""
    return "; ".join(filter(None, (test.lacks(live) for test in tests)))


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
    """Return why containers wait, or how they ended."""
    troubles = []
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        last = (container.get("lastState") or {}).get("terminated") or {}
        if waiting.get("reason", "ContainerCreating") != "ContainerCreating":
            troubles.append(f"container {container['name']}: {_says(waiting)}")
        failed = [found for found in (ended, last) if found.get("exitCode")]
        troubles += [
            f"container {container['name']} ended with exit code {end['exitCode']}: {_says(end)}" for end in failed
        ]
    return troubles


def _condition_of(text: str) -> Condition:
    """Return the condition that the annotation names; PluginError for the other ways to write one."""
    word, _, rest = text.strip().partition("=")
    name, _, status = rest.partition("=")
    if word != "condition" or not name:
        raise PluginError(
            f"annotation pulumi.com/waitFor: {text!r} isn't condition=TYPE[=STATUS], the only form that the local "
            "cloud's fake Kubernetes plugin supports"
        )
    return Condition(name, status or "True")


_MOST: Final = 3


@dataclass(frozen=True)
class Related:
    """Asks the API server for them, when something is missing."""

    api: RetryingApi

    def pods_with_claim(self, call: EngineCall, claim: Props) -> list[str]:
        """Return the pods on nodes that use a claim, with their controllers.

        Kubernetes keeps the claim while they exist.
        """
        name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
        pods = self._list(call, f"/api/v1/namespaces/{namespace}/pods")
        found = [_owned(pod) for pod in pods if pod["spec"].get("nodeName") and name in claims_of(pod["spec"])]
        return [*found[:_MOST], *([f"{len(found) - _MOST} more"] if len(found) > _MOST else [])]

    def pods_lack(self, call: EngineCall, live: Props) -> list[str]:
        """Return what blocks the first few pods of a Deployment that aren't ready."""
        told = [f"pod {name}: {lack}" for name, lack in self._unready(call, live)]
        return [*told[:_MOST], *([f"and {len(told) - _MOST} more pods"] if len(told) > _MOST else [])]

    def warnings(self, call: EngineCall, live: Props) -> list[tuple[str, str]]:
        """Return reason and text of the last few warnings about an object, and about what it created."""
        metadata = live["metadata"]
        if not metadata.get("namespace"):
            return []
        events = self._list(call, f"/api/v1/namespaces/{metadata['namespace']}/events", fieldSelector="type=Warning")
        events = [each for each in events if _concerns(each.get("involvedObject") or {}, metadata)]
        events.sort(key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))
        return list(dict.fromkeys((str(each.get("reason")), str(each.get("message"))) for each in events))[-_MOST:]

    def _unready(self, call: EngineCall, live: Props) -> Iterator[tuple[str, str]]:
        if live.get("kind") != "Deployment":
            return
        selector = ",".join(f"{key}={value}" for key, value in live["spec"]["selector"].get("matchLabels", {}).items())
        for pod in self._list(call, f"/api/v1/namespaces/{live['metadata']['namespace']}/pods", labelSelector=selector):
            if pod["metadata"].get("deletionTimestamp"):
                continue
            try:
                lack = PodReady().lacks(pod)
            except ChangeFailedError as error:
                lack = str(error)
            if lack:
                yield pod["metadata"]["name"], lack

    def _list(self, call: EngineCall, path: str, **query: str) -> list[Props]:
        """Return what can be listed: without the permission, the message has less detail, and the wait continues."""
        try:
            return self.api.ask(call, "GET", path, None, **query).get("items") or []
        except ApiError:
            return []


def _concerns(involved: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    # Objects that a controller creates are named after their owner.
    name = str(involved.get("name"))
    return involved.get("uid") == metadata["uid"] or name.startswith(f"{metadata['name']}-")


def _owned(pod: Props) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return str(pod["metadata"]["name"]) + "".join(f" of {each['kind']} {each['name']}" for each in owners[:1])


@dataclass(frozen=True)
class Readiness:
    """Checks what objects of an API server lack, and waits for it."""

    api: RetryingApi

    @property
    def _related(self) -> Related:
        return Related(self.api)

    def lacking(self, call: EngineCall, inputs: Props, live: Props) -> str:
        """Return what prevents an object from being ready now, or ""."""
        try:
            lacks = why_not(tests_of(inputs), live)
        except ChangeFailedError as error:
            lacks = str(error)
        return "; ".join([lacks, *self._details(call, live)]) if lacks else ""

    def wait(self, call: EngineCall, live: LiveObject, kind: ApiResource, inputs: Props) -> LiveObject:
        """Return the object once it is ready; what does not become ready stays in state."""
        seen, lacks = live.object, ""
        try:
            tests = tests_of(inputs)
            for delay in call.delays(_FIRST, _MOST_SECONDS):
                lacks = why_not(tests, seen)
                if not lacks:
                    if seen is not live.object:
                        call.progress("")  # what was missing is so no more
                    return LiveObject(live.ref, seen, live.manager)
                call.progress("; ".join([lacks, *self._related.pods_lack(call, seen)]))
                call.pause(delay)
                current = self.api.find(call, kind.path(live.ref.namespace, live.ref.name))
                if current is None:
                    raise PluginError(f"{live.ref} was deleted while Pulumi waited for it")  # noqa: TRY301
                seen = current
        except PluginError as error:
            state = LiveObject(live.ref, seen, live.manager).state
            text = self._unfinished(call, error, lacks, seen)
            reason = f"{live.ref} is not ready: {text}" if text else str(error)
            raise InitFailedError(reason, resource_id=live.ref.id, state=state, inputs=inputs) from None
        raise AssertionError  # pragma: no cover - delays never end

    def _unfinished(self, call: EngineCall, error: PluginError, lacks: str, seen: Props) -> str:
        """Return what was missing when the wait ended, and why it ended; "" if the error states it all."""
        failed = isinstance(error, ChangeFailedError)
        messages = [str(error) if failed else lacks] if failed or lacks else []
        if messages and not isinstance(error, CancelledError):
            # The time of the wait may be over, so these requests get a separate time limit.
            with suppress(PluginError):
                messages += self._details(EngineCall(call.urn, _LAST_QUESTION_SECONDS, call.cancel), seen)
        return "; ".join(messages) + ("" if failed or not messages else f": {why(call, error)}")

    def _details(self, call: EngineCall, live: Props) -> list[str]:
        """Return the status of a Deployment's pods, and the reported warnings."""
        pods = self._related.pods_lack(call, live)
        pods_text = "; ".join(pods)
        return [
            *pods,
            *(f"{reason}: {text}" for reason, text in self._related.warnings(call, live) if text not in pods_text),
        ]


def why(call: EngineCall, error: PluginError) -> str:
    """Return in a few words why a wait ended."""
    if isinstance(error, CancelledError):
        return "cancelled"
    return str(error) if call.left > 0 else f"time-out after {call.seconds:.0f} s"
