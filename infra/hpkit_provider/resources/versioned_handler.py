"""The common part of resources with versions (quotas and cluster policies): statuses, and convergence.

Neither creation has a client token, so every creation looks for the name first. It takes over what a killed run of this
stack created, and doesn't change what others created. Statuses and remedies: SageMaker developer guide, "Troubleshoot
task governance".
"""

import threading
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from hpkit_provider.aws.client import Document, live_tags, set_tags
from hpkit_provider.aws.errors import classify, classify_status, rejected
from hpkit_provider.engine.call import EngineCall, wait
from hpkit_provider.engine.errors import ChangeFailedError, InitFailedError, PluginError, RejectedError
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.handler import (
    CONFLICT_RETRIES,
    MAX_UPDATES,
    Handler,
    ResourceDiff,
    ResourceState,
    forced_replacement,
)
from hpkit_provider.resources.ownership import require_own
from hpkit_provider.schema.diff import changes, project, same
from hpkit_provider.schema.field import with_resets
from hpkit_provider.schema.field_table import from_api, to_api

__all__ = ["VersionedHandler"]

T = TypeVar("T")
_MAX_POLL_SECONDS: Final = 10.0
_POLL_FRACTION: Final = 0.25  # of the time waited; an organization has hundreds of quotas
# These can only be deleted and made again; UpdateFailed is retried with the current version.
_UNRECOVERABLE: Final = frozenset({"CreateFailed", "CreateRollbackFailed", "UpdateRollbackFailed"})
_DELETING: Final = frozenset({"Deleting", "DeleteFailed", "DeleteRollbackFailed"})
_RETRIED: Final = frozenset({"conflict", "transient", "role"})


class VersionedHandler(Handler):
    """Create, read, update and delete of an object with versions; subclasses define its names."""

    seconds: ClassVar[float] = 1200.0
    operation: ClassVar[str]  # what the operations are called: compute_quota

    @abstractmethod
    def poll(self, call: EngineCall, arn: str, inputs: Props) -> Document | None:
        """Return the object cheaply, for waiting."""

    @abstractmethod
    def find(self, call: EngineCall, inputs: Props) -> Document | None:
        """Return the object of that name on that cluster."""

    def send(self, call: EngineCall, operation: str, arn: str, **params: Any) -> Document:
        """Send the request of a creation or update on a cluster."""
        del arn
        return self.api.raw(call, operation, **params)

    def next_step(self, inputs: Props, live: Document) -> Props:
        """Return the next request on the way to `inputs`."""
        del live
        return inputs

    def describe(self, call: EngineCall, arn: str) -> Document | None:
        """Return the object in full."""
        ident = {f"{self.name}Id": arn.rpartition("/")[2]}
        found = self.api.find(call, f"describe_{self.operation}", **ident)
        return None if found is None or classify_status(found["Status"]) == "deleted" else found

    def diff(self, old: Props, new: Props, state: Props) -> ResourceDiff:
        """Compare; an object in a status that only deletion ends is replaced."""
        difference = super().diff(old, new, state)
        if state.get("status") in _UNRECOVERABLE:
            return ResourceDiff([*difference.changes, forced_replacement("status")])
        return difference

    def create(self, call: EngineCall, inputs: Props) -> ResourceState:
        """Create, or take over what a killed run of this stack created."""
        arn, created = self._create_or_find(call, inputs)
        return self._keeping_state(call, arn, inputs, lambda: self._converge(call, arn, inputs, just_sent=created))

    def update(self, call: EngineCall, resource_id: str, *, old: Props, new: Props, state: Props) -> ResourceState:
        """Converge; tags have separate calls."""
        del state

        def work() -> ResourceState:
            live = self._converge(call, resource_id, new, just_sent=False, stated=self._stated(old, new))
            set_tags(self.api, call, resource_id, old=old.get("tags", []), new=new.get("tags", []))
            return live

        return self._keeping_state(call, resource_id, new, work)

    def read(self, call: EngineCall, resource_id: str, inputs: Props, state: Props) -> ResourceState | None:
        """Return it as it is."""
        del state
        live = self.describe(call, resource_id)
        if live is None:
            return None
        tags = live_tags(self.api, call, live[f"{self.name}Arn"]) if not inputs or "tags" in inputs else None
        return self._resource_state(live, inputs, tags=tags)

    def delete(self, call: EngineCall, resource_id: str) -> None:
        """Delete and wait until it is gone."""
        delays = call.delays(0.2, _MAX_POLL_SECONDS)
        tries = 0
        while True:
            live = self._settle(call, resource_id, {})
            if live is None:
                return
            try:
                self.api.raw(call, f"delete_{self.operation}", **{f"{self.name}Id": resource_id.rpartition("/")[2]})
            except (ClientError, BotoCoreError) as error:
                tries += 1
                if classify(error) not in {"conflict", "transient", "not found"} or tries > CONFLICT_RETRIES:
                    raise rejected(f"Delete{self.name}", error) from None
                call.pause(next(delays))
                continue
            remaining = self._settle(call, resource_id, {})
            if remaining is None:
                return
            raise ChangeFailedError(
                f"{self._label(remaining)} couldn't be deleted ({remaining['Status']}): {_reason(remaining)}"
            )

    def _create_or_find(self, call: EngineCall, inputs: Props) -> tuple[str, bool]:
        """Return the ARN, and whether it was created just now (else it was found)."""
        delays = call.delays(0.2, _MAX_POLL_SECONDS)
        for tries in range(CONFLICT_RETRIES + 1):
            live = self.find(call, inputs)
            if live is not None and live["Status"] == "Deleting":
                self._settle(call, live[f"{self.name}Arn"], inputs)
                live = self.find(call, inputs)
            if live is not None and tries == 0:
                # What a later poll finds was sent by this run, and the response was lost.
                require_own(self.api, call, live, inputs, name=self.name)
            if live is not None and live["Status"] in _UNRECOVERABLE | _DELETING:
                self.delete(call, live[f"{self.name}Arn"])
                live = None
            if live is not None:
                return str(live[f"{self.name}Arn"]), False
            try:
                request = to_api(self.spec, inputs)
                answer = self.send(call, f"create_{self.operation}", str(inputs["clusterArn"]), **request)
                call.mark_changed()
                arn = str(answer[f"{self.name}Arn"])
                self._keeping_state(call, arn, inputs, partial(self._settle, call, arn, inputs))
            except (ClientError, BotoCoreError) as error:
                # Another change, a new role, or a lost response: look by name again, then continue.
                if classify(error) not in _RETRIED or tries == CONFLICT_RETRIES:
                    raise rejected(f"Create{self.name}", error) from None
            else:
                return arn, True
            call.pause(next(delays))
        raise AssertionError  # pragma: no cover - the loop ends by return or raise

    def _stated(self, old: Props, new: Props) -> bool:
        """Return whether the program sets something new; removed settings must return to the default."""
        return any(change.path.partition("[")[0] != "tags" for change in changes(self.spec, old, new))

    def _converge(
        self, call: EngineCall, arn: str, inputs: Props, *, just_sent: bool, stated: bool = False
    ) -> ResourceState:
        """Update until the live object equals the inputs; at least once if they are newly `stated`."""
        delays = call.delays(0.2, _MAX_POLL_SECONDS)
        tries = 0
        for _ in range(MAX_UPDATES):
            live = self._settle(call, arn, inputs) if just_sent else self._describe_settled(call, arn)
            if live is None:
                raise RejectedError(
                    f"{self.name} {arn} no longer exists. To fix: run `pulumi refresh`, then `pulumi up`."
                )
            if live["Status"] in _UNRECOVERABLE:
                raise ChangeFailedError(
                    f"{self._label(live)} is {live['Status']}: {_reason(live)}. To fix: run `pulumi up` again, "
                    "which deletes and recreates it."
                )
            if classify_status(live["Status"]) == "ready" and not stated and self._is_current(live, inputs):
                return self._resource_state(live, inputs, tags=None)
            just_sent = False
            try:
                just_sent = self._update_once(call, arn, inputs, live)
                stated = stated and not just_sent
            except (ClientError, BotoCoreError) as error:
                tries += 1
                if classify(error) not in _RETRIED or tries > CONFLICT_RETRIES:
                    raise rejected(f"Update{self.name}", error) from None
                call.pause(next(delays))
        raise ChangeFailedError(
            f"{self.name} {arn} still differs from the program after {MAX_UPDATES} updates. To fix: run "
            "`pulumi refresh`, which shows what differs."
        )

    def _update_once(self, call: EngineCall, arn: str, inputs: Props, live: Document) -> bool:
        """Send one update against the last seen version, and wait until it's done; return whether it was sent."""
        if classify_status(live["Status"]) == "modifying":
            return False
        inputs = self.next_step(inputs, live)
        full = to_api(self.spec, with_resets(self.spec, inputs))
        body = {name: value for name, value in full.items() if name not in ("Name", "ClusterArn", "Tags")}
        ident = {f"{self.name}Id": arn.rpartition("/")[2], "TargetVersion": live[f"{self.name}Version"]}
        self.send(call, f"update_{self.operation}", str(live["ClusterArn"]), **ident, **body)
        call.mark_changed()
        after = self._settle(call, arn, inputs)
        if after is not None and classify_status(after["Status"]) == "failed":
            raise ChangeFailedError(
                f"{self._label(after)} is {after['Status']}: {_reason(after)}. To fix: run `pulumi up` "
                "again, which retries the update with the current version."
            )
        return True

    def _describe_settled(self, call: EngineCall, arn: str) -> Document | None:
        live = self.describe(call, arn)
        if live is not None and classify_status(live["Status"]) == "modifying":
            self._settle(call, arn, {})
            live = self.describe(call, arn)
        return live

    def _settle(self, call: EngineCall, arn: str, inputs: Props) -> Document | None:
        """Wait until no change runs; a failed object is returned in full, with its reason."""
        seen = wait(
            call,
            lambda: self.poll(call, arn, inputs),
            settled=lambda found: classify_status(found["Status"] if found else None) != "modifying",
            progress=lambda found: found["Status"] if found else "gone",
            max_seconds=_MAX_POLL_SECONDS,
            fraction=_POLL_FRACTION,
        )
        if seen is not None and classify_status(seen["Status"]) == "failed":
            return self.describe(call, arn)
        return seen

    def _keeping_state(self, call: EngineCall, arn: str, inputs: Props, work: Callable[[], T]) -> T:
        """Run; if it ends early, the engine keeps the real state."""
        try:
            return work()
        except InitFailedError:
            raise
        except PluginError as error:
            state = {**inputs, f"{_lower(self.name)}Arn": arn, "status": "Unknown"}
            try:
                # The time is up or the run is canceled: one last call needs a separate time limit.
                last = self.describe(EngineCall(call.urn, 20.0, threading.Event(), call.log), arn)
            except PluginError:
                last = None
            if last is not None:
                state = self._state(last, inputs)
            raise InitFailedError(str(error), resource_id=arn, state=state, inputs=inputs) from None

    def _is_current(self, live: Document, inputs: Props) -> bool:
        wanted = {name: value for name, value in with_resets(self.spec, inputs).items() if name != "tags"}
        return same(self.spec, wanted, project(self.spec, wanted, from_api(self.spec, live)))

    def _resource_state(self, live: Document, inputs: Props, *, tags: list[Any] | None) -> ResourceState:
        properties = from_api(self.spec, live)
        stated = inputs or None
        if tags is None and "tags" in inputs:
            properties["tags"] = inputs["tags"]
        elif tags:
            properties["tags"] = tags
        projected = project(self.spec, stated, properties)
        return ResourceState(str(live[f"{self.name}Arn"]), self._state(live, projected), projected)

    def _state(self, live: Document, inputs: Props) -> Props:
        first = _lower(self.name)
        extra = {
            f"{first}Arn": live[f"{self.name}Arn"],
            f"{first}Id": live[f"{self.name}Id"],
            f"{first}Version": live[f"{self.name}Version"],
            "status": live["Status"],
            "failureReason": live.get("FailureReason"),
        }
        return {**inputs, **{name: value for name, value in extra.items() if value is not None}}

    def _label(self, live: Document) -> str:
        return f"{self.name} {live.get('Name', '')!r}"


def _reason(live: Document) -> str:
    details = live.get("StatusDetails") or {}
    parts = [f"{part} {status}" for part, status in details.items() if classify_status(status) == "failed"]
    return "; ".join(filter(None, [live.get("FailureReason", "no reason given"), *parts])).rstrip(".")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
