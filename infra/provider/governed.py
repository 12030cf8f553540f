"""What quotas and cluster policies have in common: versions, statuses, one way to converge.

Neither call takes a client token, so every creation looks by name first: what a killed run made is taken
over, not made twice. Statuses and remedies: SageMaker developer guide, "Troubleshoot task governance".
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from provider.diff import changes, same
from provider.errors import ChangeFailedError, PartlyDoneError, PluginError, RefusedError, classify, refused
from provider.fields import from_api, to_api
from provider.handler import CONFLICT_TRIES, Diff, Handler, Live, status_change
from provider.projection import project
from provider.tags import live_tags, set_tags
from provider.task import Task
from provider.values import Props
from provider.waiter import kind_of, wait

__all__ = ["Document", "Governed"]

Document = dict[str, Any]
T = TypeVar("T")
_MOST = 10.0
_SHARE = 0.25  # of the time waited; an organization has hundreds of quotas
# These can only be deleted and made again; UpdateFailed is retried with the current version.
_LOST = frozenset({"CreateFailed", "CreateRollbackFailed", "UpdateRollbackFailed"})
_RETRY = {"conflict", "unsure", "role"}


class Governed(Handler):
    """Create, read, update and delete of an object with versions; subclasses say what it is called."""

    seconds: ClassVar[float] = 1200.0
    title: ClassVar[str]  # ComputeQuota
    snake: ClassVar[str]  # compute_quota

    @abstractmethod
    def look(self, task: Task, arn: str, inputs: Props) -> Document | None:
        """Return the object cheaply, for waiting."""

    @abstractmethod
    def find(self, task: Task, inputs: Props) -> Document | None:
        """Return the object of that name on that cluster."""

    @abstractmethod
    def complete(self, inputs: Props) -> Props:
        """Return the inputs with the service's defaults written out, for comparing."""

    @contextmanager
    def changing(self, task: Task, inputs: Props, live: Document | None) -> Iterator[None]:
        """Hold whatever a change needs while it runs."""
        del task, inputs, live
        yield

    def step(self, inputs: Props, live: Document) -> Props:
        """Return what to send now on the way to `inputs`."""
        del live
        return inputs

    def describe(self, task: Task, arn: str) -> Document | None:
        """Return the object in full."""
        ident = {f"{self.title}Id": arn.rpartition("/")[2]}
        found: Document | None = self.api.find(task, f"describe_{self.snake}", **ident)
        return None if found is None or kind_of(found["Status"]) == "gone" else found

    def diff(self, old: Props, new: Props, state: Props) -> Diff:
        """Compare; an object in a status that only deletion ends is replaced."""
        found = super().diff(old, new, state)
        if state.get("status") in _LOST:
            return Diff([*found.changes, status_change("status")])
        return found

    def create(self, task: Task, inputs: Props) -> Live:
        """Create, or take over what is there under that name."""
        arn, made = self._begin(task, inputs)
        return self._keeping(task, arn, inputs, lambda: self._converge(task, arn, inputs, fresh=made))

    def update(self, task: Task, resource_id: str, *, old: Props, new: Props, state: Props) -> Live:
        """Converge; tags go by calls of their own."""
        del state

        def work() -> Live:
            live = self._converge(task, resource_id, new, fresh=False, stated=self._stated(old, new))
            set_tags(self.api, task, resource_id, old=old.get("tags", []), new=new.get("tags", []))
            return live

        return self._keeping(task, resource_id, new, work)

    def read(self, task: Task, resource_id: str, inputs: Props, state: Props) -> Live | None:
        """Return it as it is."""
        del state
        live = self.describe(task, resource_id)
        if live is None:
            return None
        tags = live_tags(self.api, task, live[f"{self.title}Arn"]) if not inputs or "tags" in inputs else None
        return self._live(live, inputs, tags=tags)

    def delete(self, task: Task, resource_id: str) -> None:
        """Delete and wait until it is gone."""
        delays = task.delays(0.2, _MOST)
        tries = 0
        while True:
            live = self._settle(task, resource_id, {})
            if live is None:
                return
            try:
                self.api.raw(task, f"delete_{self.snake}", **{f"{self.title}Id": resource_id.rpartition("/")[2]})
            except (ClientError, BotoCoreError) as error:
                tries += 1
                if classify(error) not in {"conflict", "unsure", "gone"} or tries > CONFLICT_TRIES:
                    raise refused(f"Delete{self.title}", error) from None
                task.pause(next(delays))
                continue
            left = self._settle(task, resource_id, {})
            if left is None:
                return
            raise ChangeFailedError(f"{self._called(left)} could not be deleted ({left['Status']}): {_reason(left)}")

    def _begin(self, task: Task, inputs: Props) -> tuple[str, bool]:
        """Return the ARN, and whether it was made just now (else it was found)."""
        delays = task.delays(0.2, _MOST)
        for tries in range(CONFLICT_TRIES + 1):
            live = self.find(task, inputs)
            if live is not None and live["Status"] in _LOST | {"Deleting", "DeleteFailed", "DeleteRollbackFailed"}:
                self.delete(task, live[f"{self.title}Arn"])
                live = None
            if live is not None:
                return str(live[f"{self.title}Arn"]), False
            try:
                with self.changing(task, inputs, None):
                    answer = self.api.raw(task, f"create_{self.snake}", **to_api(self.spec, inputs))
                    task.touch()
                    arn = str(answer[f"{self.title}Arn"])
                    self._keeping(task, arn, inputs, partial(self._settle, task, arn, inputs))
                    return arn, True
            except (ClientError, BotoCoreError) as error:
                # Somebody else's change, a fresh role, or an answer that was lost: look again, then go on.
                if classify(error) not in _RETRY or tries == CONFLICT_TRIES:
                    raise refused(f"Create{self.title}", error) from None
            task.pause(next(delays))
        raise AssertionError  # pragma: no cover - the loop ends by return or raise

    def _stated(self, old: Props, new: Props) -> bool:
        """Whether the program says something new; what it no longer says must go back to the default."""
        return any(change.path.partition("[")[0] != "tags" for change in changes(self.spec, old, new))

    def _converge(self, task: Task, arn: str, inputs: Props, *, fresh: bool, stated: bool = False) -> Live:
        """Update until the live object is what the inputs say; at least once if they are newly `stated`."""
        delays = task.delays(0.2, _MOST)
        tries = 0
        while True:
            live = self._settle(task, arn, inputs) if fresh else self._settled_in_full(task, arn)
            if live is None:
                raise RefusedError(f"{self.title} {arn} is gone. What to do: run `pulumi refresh`, then `pulumi up`.")
            if live["Status"] in _LOST:
                raise ChangeFailedError(
                    f"{self._called(live)} is {live['Status']}: {_reason(live)}. "
                    "What to do: run `pulumi up` again, it will be deleted and made anew."
                )
            if kind_of(live["Status"]) == "ready" and not stated and self._is(live, inputs):
                return self._live(live, inputs, tags=None)
            fresh = False
            try:
                fresh = self._update_once(task, arn, inputs, live)
                stated = stated and not fresh
            except (ClientError, BotoCoreError) as error:
                tries += 1
                if classify(error) not in _RETRY or tries > CONFLICT_TRIES:
                    raise refused(f"Update{self.title}", error) from None
                task.pause(next(delays))

    def _update_once(self, task: Task, arn: str, inputs: Props, live: Document) -> bool:
        """Send one update against the version that was seen last, and see it through; say if it was sent."""
        if kind_of(live["Status"]) == "modifying":
            return False
        inputs = self.step(inputs, live)
        full = to_api(self.spec, self.complete(inputs))
        body = {name: value for name, value in full.items() if name not in ("Name", "ClusterArn", "Tags")}
        ident = {f"{self.title}Id": arn.rpartition("/")[2], "TargetVersion": live[f"{self.title}Version"]}
        with self.changing(task, inputs, live):
            self.api.raw(task, f"update_{self.snake}", **ident, **body)
            task.touch()
            after = self._settle(task, arn, inputs)
            if after is not None and kind_of(after["Status"]) == "failed":
                raise ChangeFailedError(
                    f"{self._called(after)} is {after['Status']}: {_reason(after)}. "
                    "What to do: run `pulumi up` again, the update is retried with the current version."
                )
        return True

    def _settled_in_full(self, task: Task, arn: str) -> Document | None:
        live = self.describe(task, arn)
        if live is not None and kind_of(live["Status"]) == "modifying":
            self._settle(task, arn, {})
            live = self.describe(task, arn)
        return live

    def _settle(self, task: Task, arn: str, inputs: Props) -> Document | None:
        """Wait until no change runs; a failed object comes back in full, with its reason."""
        seen: Document | None = wait(
            task,
            lambda: self.look(task, arn, inputs),
            settled=lambda found: kind_of(found and found["Status"]) != "modifying",
            progress=lambda found: found["Status"] if found else "gone",
            most=_MOST,
            share=_SHARE,
        )
        if seen is not None and kind_of(seen["Status"]) == "failed":
            return self.describe(task, arn)
        return seen

    def _keeping(self, task: Task, arn: str, inputs: Props, work: Callable[[], T]) -> T:
        """Run; whatever ends it early leaves the true state with the engine."""
        try:
            return work()
        except PartlyDoneError:
            raise
        except PluginError as error:
            state = {**inputs, f"{_lower(self.title)}Arn": arn, "status": "Unknown"}
            try:
                # The time is up or the run is cancelled: one last look needs a moment of its own.
                last = self.describe(Task(task.urn, 20.0, threading.Event(), task.log), arn)
            except PluginError:
                last = None
            if last is not None:
                state = self._state(last, inputs)
            raise PartlyDoneError(str(error), resource_id=arn, state=state, inputs=inputs) from None

    def _is(self, live: Document, inputs: Props) -> bool:
        wanted = {name: value for name, value in self.complete(inputs).items() if name != "tags"}
        return same(self.spec, wanted, project(self.spec, wanted, from_api(self.spec, live)))

    def _live(self, live: Document, inputs: Props, *, tags: list[Any] | None) -> Live:
        found = from_api(self.spec, live)
        stated = inputs or None
        if tags is None and "tags" in inputs:
            found["tags"] = inputs["tags"]
        elif tags:
            found["tags"] = tags
        told = project(self.spec, stated, found)
        return Live(str(live[f"{self.title}Arn"]), self._state(live, told), told)

    def _state(self, live: Document, inputs: Props) -> Props:
        first = _lower(self.title)
        extra = {
            f"{first}Arn": live[f"{self.title}Arn"],
            f"{first}Id": live[f"{self.title}Id"],
            f"{first}Version": live[f"{self.title}Version"],
            "status": live["Status"],
            "failureReason": live.get("FailureReason"),
        }
        return {**inputs, **{name: value for name, value in extra.items() if value is not None}}

    def _called(self, live: Document) -> str:
        return f"{self.title} {live.get('Name', '')!r}"


def _reason(live: Document) -> str:
    details = live.get("StatusDetails") or {}
    parts = [f"{part} {status}" for part, status in details.items() if kind_of(status) == "failed"]
    return "; ".join(filter(None, [live.get("FailureReason", "no reason given"), *parts])).rstrip(".")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
