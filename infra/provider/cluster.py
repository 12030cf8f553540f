"""Cluster: a HyperPod cluster orchestrated by EKS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar

from provider import cluster_keep as keep
from provider.cluster_live import MOST, SHARE, Document, LiveCluster, broken, line
from provider.cluster_plan import handed_over, nodes, plan_update, refusals, unknown_groups
from provider.cluster_words import (
    GROUPS,
    group_names,
    inherited,
    keep_subnets,
    live_inputs,
    told,
    widened,
    without_counts,
)
from provider.diff import same
from provider.errors import ChangeFailedError, PartlyDoneError, PluginError, RefusedError
from provider.fields import to_api
from provider.handler import Diff, Handler, Live, status_change
from provider.tags import live_tags, set_tags
from provider.task import Task
from provider.values import Props, walk_unknown
from provider.waiter import kind_of, wait

__all__ = ["Cluster"]

_ROUNDS = 40
_LOOK_SECONDS = 10.0


class Cluster(Handler):
    """Handler of hyperpod:index:Cluster."""

    name: ClassVar[str] = "Cluster"
    seconds: ClassVar[float] = 3 * 3600.0  # MinInstanceCount alone may take three hours

    def diff(self, old: Props, new: Props, state: Props) -> Diff:
        """Compare; Karpenter's counts are no difference. What the API refuses, or what must not go, is an error."""
        self._declare(str(state.get("clusterArn", "")), new)
        told_old, told_new = inherited(keep_subnets(old, state)), inherited(keep_subnets(new, state))
        found = super().diff(without_counts(told_old, told_new), without_counts(told_new, told_new), state)
        if found.changes and state.get("clusterArn"):
            self.cloud.room.resize(state["clusterArn"])
        if state.get("creationFailed"):
            # Nothing ever ran on it: there is nothing to lose.
            return Diff([*found.changes, status_change("clusterStatus")])
        if found.replaces:
            if not self._may_replace(new):
                raise RefusedError(self._replacement(found, told_old, told_new, state))
            return found
        refused_changes = [*refusals(told_old, told_new), *keep.lost_subnets(told_new, state)]
        if refused_changes:
            raise RefusedError("HyperPod cannot make these changes in place:\n  " + "\n  ".join(refused_changes))
        lost = [group for group in self._leaving(old, new, state) if not _may_delete(new, group.name)]
        if lost:
            raise RefusedError(keep.deletion_refused(lost))
        return found

    def remarks(self, old: Props, new: Props, state: Props) -> list[str]:
        """Say which groups stay out of added subnets, what goes as allowed, and what is allowed in vain."""
        found = [
            f"Instance group {name} keeps its subnets: the API cannot add to them. New zones are used by new groups."
            for name in widened(old, new, state)
        ]
        if state.get("creationFailed"):
            return found
        replaced = bool(super().diff(keep_subnets(old, state), keep_subnets(new, state), state).replaces)
        going = keep.leaving_of(old, new, state)
        if going and not replaced:
            found += [keep.deleted_as_allowed(there)] if (there := self._leaving(old, new, state)) else []
        return [*found, *keep.needless(new, going, replaced=replaced)]

    def _may_replace(self, new: Props) -> bool:
        """Return whether it may be replaced; the provider's word also holds where the engine asks with old inputs."""
        return new.get("allowReplace") is True or self.cloud.allow_replace

    def _replacement(self, found: Diff, old: Props, new: Props, state: Props) -> str:
        name = str(old.get("clusterName", state.get("clusterArn", "")))
        why = keep.reasons(found.changes, old, new)
        return keep.replacement_refused(
            name, why, nodes=keep.nodes_of(state), teams=self._teams(str(state.get("clusterArn")))
        )

    def _teams(self, arn: str) -> list[str]:
        """Return the teams with quota on a cluster; none when the service does not answer."""
        try:
            entries = self.cloud.room.quotas(_look(), arn).value
        except PluginError:
            return []
        return sorted({str(entry["ComputeQuotaTarget"]["TeamName"]) for entry in entries})

    def _leaving(self, old: Props, new: Props, state: Props) -> list[keep.Leaving]:
        """Return the groups that a change deletes with instances; the service is asked only when some group leaves."""
        going = keep.leaving_of(old, new, state)
        if not going or not state.get("clusterArn"):
            return []
        try:
            document = LiveCluster(self.api, _look(), str(state["clusterArn"])).describe()
        except PluginError:
            return keep.still_there(going, None)
        return keep.still_there(going, document or {})

    def create(self, task: Task, inputs: Props) -> Live:
        """Create without autoscaling, then enable it; a cluster that a killed run made is taken over."""
        arn = self._begin(task, inputs)
        managed = group_names(inputs)

        def work() -> Live:
            live = LiveCluster(self.api, task, arn)
            first = live.settle()
            if first is not None and kind_of(first["ClusterStatus"]) == "failed":
                raise live.failure(first)
            return self._converge(task, arn, old={}, new=inputs, managed=managed)

        return self._keeping(task, arn, inputs, work, managed=managed, creating=True)

    def read(self, task: Task, resource_id: str, inputs: Props, state: Props) -> Live | None:
        """Return it as it is; groups nobody declared are reported, at import they are taken over."""
        document = LiveCluster(self.api, task, resource_id).describe()
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
        self._declare(resource_id, new)
        known = {*state.get("managedInstanceGroups", group_names(old)), *group_names(new)}
        managed = sorted(known.difference(handed_over(old, new)))

        def work() -> Live:
            live = self._converge(task, resource_id, old=old, new=new, managed=managed)
            set_tags(self.api, task, resource_id, old=old.get("tags", []), new=new.get("tags", []))
            return live

        return self._keeping(task, resource_id, new, work, managed=managed, creating=False)

    def delete(self, task: Task, resource_id: str) -> None:
        """Delete and wait until it is gone: roles and network must outlive it."""
        live = LiveCluster(self.api, task, resource_id)
        for tries, delay in enumerate(task.delays(0.2, MOST)):
            if live.settle() is None:
                return
            asked = live.ask("delete_cluster", {"ClusterName": resource_id}, tries=tries, fine=frozenset({"gone"}))
            if asked is None:
                task.pause(delay)
                continue
            document = live.settle()
            if document is None:
                return
            raise live.failure(document)

    def _declare(self, arn: str, new: Props) -> None:
        """Tell those who delete groups which ones the program has; a preview may not know, and deletes none."""
        if arn and not any(walk_unknown([new.get(member) for member in GROUPS])):
            self.cloud.groups.declare(arn, group_names(new))

    def _begin(self, task: Task, inputs: Props) -> str:
        """Return the ARN of the cluster that was made or found."""
        wanted = {name: value for name, value in inputs.items() if name != "autoScaling"}
        live = LiveCluster(self.api, task, inputs["clusterName"])
        for tries, delay in enumerate(task.delays(0.3, MOST)):
            found = self._existing(task, inputs)
            if found is not None:
                return str(found["ClusterArn"])
            made = live.ask("create_cluster", to_api(self.spec, wanted), tries=tries)
            if made is not None:
                return str(made["ClusterArn"])
            task.pause(delay)
        raise AssertionError  # pragma: no cover - delays never end

    def _existing(self, task: Task, inputs: Props) -> Document | None:
        """Return a cluster of that name if it is the one meant; else say what is in the way."""
        document = LiveCluster(self.api, task, inputs["clusterName"]).describe()
        if document is not None and document["ClusterStatus"] == "Deleting":
            document = LiveCluster(self.api, task, str(document["ClusterArn"])).settle()
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
        cluster = LiveCluster(self.api, task, arn)
        delays, tries = task.delays(0.2, MOST), 0
        leaving = handed_over(old, new)
        for _ in range(_ROUNDS):
            document = cluster.settle()
            if document is None:
                raise RefusedError(f"Cluster {arn} is gone. What to do: run `pulumi refresh`, then `pulumi up`.")
            live = live_inputs(self.spec, document)
            plan = plan_update(self.spec, old=old, new=new, live=live, document=document, managed=managed)
            if not plan.request and not plan.waits_for:
                if kind_of(document["ClusterStatus"]) == "failed":
                    raise cluster.failure(document)
                return self._arrived(cluster, new, managed=managed, leaving=leaving)
            if not plan.request:
                raise RefusedError(f"{plan.waits_for} cannot change while autoScaling is enabled: disable that first.")
            if not cluster.update(plan.request, tries=tries):
                tries += 1
                task.pause(next(delays))
                continue
            after = cluster.settle()
            if after is not None and broken(after):
                raise cluster.failure(after)
            if not plan.waits_for:
                old = new  # what is newly stated was sent; from here on only live differences count
        raise ChangeFailedError(
            f"Cluster {arn} does not take over: {sorted(plan.request)} still differ after every update."
        )

    def _arrived(self, cluster: LiveCluster, inputs: Props, *, managed: list[str], leaving: list[str]) -> Live:
        """Wait for nodes within reason: continuous provisioning accepts part of the capacity and goes on asking."""
        task = cluster.task
        autoscaled = [*inputs.get("autoscaledInstanceGroups", []), *leaving]
        deadline = time.monotonic() + self.cloud.node_wait

        def enough(document: Document | None) -> bool:
            there, wanted = nodes(document or {}, autoscaled=autoscaled)
            return there >= wanted or time.monotonic() > deadline

        document = wait(
            task,
            cluster.describe,
            settled=enough,
            progress=lambda seen: line(seen, autoscaled),
            most=MOST,
            share=SHARE,
        )
        there, wanted = nodes(document, autoscaled=autoscaled)
        if there < wanted:
            task.warn(f"{there} of {wanted} nodes are there; HyperPod keeps asking for the rest.")
        live = live_inputs(self.spec, document)
        stray = unknown_groups(inputs, live, [*managed, *leaving])
        if stray:
            task.warn(f"Instance groups {', '.join(stray)} are not in the program; they are left alone.")
        if "tags" in inputs:
            live["tags"] = inputs["tags"]
        return told(self.spec, document, live, inputs, managed=group_names(inputs), failed=False)

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
                document = LiveCluster(self.api, Task(task.urn, 20.0, threading.Event(), task.log), arn).describe()
            except PluginError:
                document = None
            if document is not None:
                failed = creating and kind_of(document["ClusterStatus"]) == "failed"
                live = live_inputs(self.spec, document)
                seen = told(self.spec, document, live, inputs, managed=managed, failed=failed).state
                state = {**seen, **keep_subnets(inputs, live)}
            raise PartlyDoneError(str(error), resource_id=arn, state=state, inputs=inputs) from None


def _look() -> Task:
    """Return what one look needs: a comparison has no clock of its own, and must not wait long."""
    return Task("", _LOOK_SECONDS, threading.Event(), hasty=True)


def _may_delete(new: Props, group: str) -> bool:
    return group in new.get("allowDeleteInstanceGroups", [])
