"""Cluster: a HyperPod cluster orchestrated by EKS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError

from provider.cluster_plan import nodes, plan_update, refusals, settled, unknown_groups
from provider.cluster_words import group_names, live_inputs, told, without_counts
from provider.diff import same
from provider.errors import ChangeFailedError, PartlyDoneError, PluginError, RefusedError, classify, refused
from provider.fields import to_api
from provider.handler import CONFLICT_TRIES, Diff, Handler, Live, status_change
from provider.tags import live_tags, set_tags
from provider.task import Task
from provider.values import Props
from provider.waiter import kind_of, wait

__all__ = ["Cluster"]

Document = dict[str, Any]
_MOST = 20.0
_ROUNDS = 40
_EVENTS = 3
_RETRY = {"conflict", "unsure", "role", "checking"}


class Cluster(Handler):
    """Handler of hyperpod:index:Cluster."""

    name: ClassVar[str] = "Cluster"
    seconds: ClassVar[float] = 3 * 3600.0  # MinInstanceCount alone may take three hours

    def diff(self, old: Props, new: Props, state: Props) -> Diff:
        """Compare; Karpenter's counts are no difference, what the API refuses is an error at preview."""
        found = super().diff(without_counts(old, new), without_counts(new, new), state)
        if found.changes and state.get("clusterArn"):
            self.cloud.room.resize(state["clusterArn"])
        if state.get("creationFailed"):
            return Diff([*found.changes, status_change("clusterStatus")])
        refused_changes = [] if found.replaces else refusals(old, new)
        if refused_changes:
            raise RefusedError("HyperPod cannot make these changes in place:\n  " + "\n  ".join(refused_changes))
        return found

    def create(self, task: Task, inputs: Props) -> Live:
        """Create without autoscaling, then enable it; a cluster that a killed run made is taken over."""
        arn = self._begin(task, inputs)
        managed = group_names(inputs)

        def work() -> Live:
            first = self._settle(task, arn)
            if first is not None and kind_of(first["ClusterStatus"]) == "failed":
                raise self._failure(task, first)
            return self._converge(task, arn, old={}, new=inputs, managed=managed)

        return self._keeping(task, arn, inputs, work, managed=managed, creating=True)

    def read(self, task: Task, resource_id: str, inputs: Props, state: Props) -> Live | None:
        """Return it as it is; groups nobody declared are reported, at import they are taken over."""
        document = self._describe(task, resource_id)
        if document is None:
            return None
        arn = str(document["ClusterArn"])
        live = live_inputs(self.spec, document)
        managed = list(state.get("managedInstanceGroups", group_names(inputs or live)))
        if inputs:
            stray = unknown_groups(inputs, live, managed)
            if stray:
                task.warn(f"Instance groups {', '.join(stray)} are not in the program; they are left alone.")
        if not inputs or "tags" in inputs:
            live["tags"] = live_tags(self.api, task, arn)
        return told(self.spec, document, live, inputs, managed=managed, failed=bool(state.get("creationFailed")))

    def update(self, task: Task, resource_id: str, *, old: Props, new: Props, state: Props) -> Live:
        """Send what differs from what is live, and see it through."""
        managed = sorted({*state.get("managedInstanceGroups", group_names(old)), *group_names(new)})

        def work() -> Live:
            live = self._converge(task, resource_id, old=old, new=new, managed=managed)
            set_tags(self.api, task, resource_id, old=old.get("tags", []), new=new.get("tags", []))
            return live

        return self._keeping(task, resource_id, new, work, managed=managed, creating=False)

    def delete(self, task: Task, resource_id: str) -> None:
        """Delete and wait until it is gone: roles and network must outlive it."""
        tries = 0
        for delay in task.delays(0.2, _MOST):
            document = self._settle(task, resource_id)
            if document is None:
                return
            try:
                self.api.raw(task, "delete_cluster", ClusterName=resource_id)
            except (ClientError, BotoCoreError) as error:
                tries += 1
                if classify(error) not in _RETRY | {"gone"} or tries > CONFLICT_TRIES:
                    raise refused("DeleteCluster", error) from None
                task.pause(delay)
                continue
            document = self._settle(task, resource_id)
            if document is None:
                return
            raise self._failure(task, document)

    def _begin(self, task: Task, inputs: Props) -> str:
        """Return the ARN of the cluster that was made or found."""
        wanted = {name: value for name, value in inputs.items() if name != "autoScaling"}
        for tries, delay in enumerate(task.delays(0.3, _MOST)):
            found = self._existing(task, inputs)
            if found is not None:
                return str(found["ClusterArn"])
            try:
                return str(self.api.raw(task, "create_cluster", **to_api(self.spec, wanted))["ClusterArn"])
            except (ClientError, BotoCoreError) as error:
                if classify(error) not in _RETRY or tries >= CONFLICT_TRIES:
                    raise refused("CreateCluster", error) from None
            task.pause(delay)
        raise AssertionError  # pragma: no cover - delays never end

    def _existing(self, task: Task, inputs: Props) -> Document | None:
        """Return a cluster of that name if it is the one meant; else say what is in the way."""
        document = self._describe(task, inputs["clusterName"])
        if document is not None and document["ClusterStatus"] == "Deleting":
            document = self._settle(task, str(document["ClusterArn"]))
        if document is None:
            return None
        live = live_inputs(self.spec, document)
        for name in ("orchestrator", "vpcConfig"):
            if not same(self.spec.by_name[name], live.get(name, {}), inputs[name]):
                raise RefusedError(
                    f"There is a cluster {inputs['clusterName']!r} already, with another {name}: {live.get(name)}. "
                    "What to do: choose another clusterName, or `pulumi import` that cluster."
                )
        if kind_of(document["ClusterStatus"]) == "failed":
            raise RefusedError(
                f"There is a cluster {inputs['clusterName']!r} already, in status Failed: "
                f"{document.get('FailureMessage', 'no reason given')}. What to do: delete it, then run again."
            )
        if document["ClusterStatus"] == "InService":
            task.warn(f"Cluster {inputs['clusterName']} exists already ({document['ClusterArn']}): taken over.")
        return document

    def _converge(self, task: Task, arn: str, *, old: Props, new: Props, managed: list[str]) -> Live:
        delays = task.delays(0.2, _MOST)
        tries = 0
        for _ in range(_ROUNDS):
            document = self._settle(task, arn)
            if document is None:
                raise RefusedError(f"Cluster {arn} is gone. What to do: run `pulumi refresh`, then `pulumi up`.")
            live = live_inputs(self.spec, document)
            plan = plan_update(self.spec, old=old, new=new, live=live, document=document, managed=managed)
            if not plan.request and not plan.waits_for:
                if kind_of(document["ClusterStatus"]) == "failed":
                    raise self._failure(task, document)
                return self._arrived(task, arn, new, managed)
            if not plan.request:
                raise RefusedError(f"{plan.waits_for} cannot change while autoScaling is enabled: disable that first.")
            try:
                self.api.raw(task, "update_cluster", ClusterName=arn, **plan.request)
            except (ClientError, BotoCoreError) as error:
                tries += 1
                if classify(error) not in _RETRY or (tries > CONFLICT_TRIES and classify(error) != "checking"):
                    raise refused("UpdateCluster", error) from None
                task.pause(next(delays))
                continue
            after = self._settle(task, arn)
            if after is not None and _broken(after):
                raise self._failure(task, after)
            if not plan.waits_for:
                old = new  # what is newly stated was sent; from here on only live differences count
        raise ChangeFailedError(
            f"Cluster {arn} does not take over: {sorted(plan.request)} still differ after every update."
        )

    def _arrived(self, task: Task, arn: str, inputs: Props, managed: list[str]) -> Live:
        """Wait for nodes within reason: continuous provisioning accepts part of the capacity and goes on asking."""
        autoscaled = inputs.get("autoscaledInstanceGroups", [])
        deadline = time.monotonic() + self.cloud.node_wait

        def enough(document: Document | None) -> bool:
            there, wanted = nodes(document or {}, autoscaled=autoscaled)
            return there >= wanted or time.monotonic() > deadline

        document = wait(
            task,
            lambda: self._describe(task, arn),
            settled=enough,
            progress=lambda seen: _line(seen, autoscaled),
            most=_MOST,
        )
        there, wanted = nodes(document, autoscaled=autoscaled)
        if there < wanted:
            task.warn(f"{there} of {wanted} nodes are there; HyperPod keeps asking for the rest.")
        live = live_inputs(self.spec, document)
        stray = unknown_groups(inputs, live, managed)
        if stray:
            task.warn(f"Instance groups {', '.join(stray)} are not in the program; they are left alone.")
        if "tags" in inputs:
            live["tags"] = inputs["tags"]
        return told(self.spec, document, live, inputs, managed=group_names(inputs), failed=False)

    def _describe(self, task: Task, name_or_arn: str) -> Document | None:
        found: Document | None = self.api.find(task, "describe_cluster", ClusterName=name_or_arn)
        return found

    def _settle(self, task: Task, arn: str) -> Document | None:
        found: Document | None = wait(
            task,
            lambda: self._describe(task, arn),
            settled=settled,
            progress=lambda seen: _line(seen, []),
            most=_MOST,
        )
        return found

    def _failure(self, task: Task, document: Document) -> ChangeFailedError:
        """Say why it failed: the service's reason, and the last events of the cluster."""
        reason = document.get("FailureMessage") or document.get("AutoScaling", {}).get("FailureMessage")
        text = f"Cluster {document['ClusterName']!r} is {document['ClusterStatus']}: {reason or 'no reason given'}"
        try:
            answer = self.api.call(
                task,
                "list_cluster_events",
                ClusterName=document["ClusterArn"],
                SortBy="EventTime",
                SortOrder="Descending",
                MaxResults=_EVENTS,
            )
        except PluginError:
            return ChangeFailedError(text)
        events = [f"  {event['EventTime']:%H:%M:%S} {event['Description']}" for event in answer.get("Events", [])]
        return ChangeFailedError("\n".join([text, "Last events:", *events]) if events else text)

    def _keeping(
        self, task: Task, arn: str, inputs: Props, work: Callable[[], Live], *, managed: list[str], creating: bool
    ) -> Live:
        """Run; whatever ends it early leaves the true state with the engine."""
        try:
            return work()
        except PluginError as error:
            state: Props = {**inputs, "clusterArn": arn, "clusterStatus": "Unknown", "managedInstanceGroups": managed}
            try:
                # The time is up or the run is cancelled: one last look needs a moment of its own.
                document = self._describe(Task(task.urn, 20.0, threading.Event(), task.log), arn)
            except PluginError:
                document = None
            if document is not None:
                failed = creating and kind_of(document["ClusterStatus"]) == "failed"
                live = live_inputs(self.spec, document)
                state = {**told(self.spec, document, live, inputs, managed=managed, failed=failed).state, **inputs}
            raise PartlyDoneError(str(error), resource_id=arn, state=state, inputs=inputs) from None


def _broken(document: Document) -> bool:
    return kind_of(document["ClusterStatus"]) == "failed" or document.get("AutoScaling", {}).get("Status") == "Failed"


def _line(document: Document | None, autoscaled: list[str]) -> str:
    if document is None:
        return "gone"
    there, wanted = nodes(document, autoscaled=autoscaled)
    return f"{document['ClusterStatus']} {there}/{wanted} nodes"
