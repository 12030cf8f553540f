"""Cluster: a HyperPod cluster orchestrated by EKS."""

import threading
from collections.abc import Callable
from typing import ClassVar, Final

from hpkit_provider.aws.client import Document, live_tags, set_tags
from hpkit_provider.aws.errors import classify_status
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import ChangeFailedError, InitFailedError, PluginError, RejectedError, RolledBackError
from hpkit_provider.engine.values import Props, has_unknown
from hpkit_provider.resources.cluster import protection
from hpkit_provider.resources.cluster.cluster_state import (
    GROUPS,
    first_stated,
    group_names,
    groups_with_added_subnets,
    live_inputs,
    to_state,
    with_live_values,
    without_added_subnets,
    without_autoscaled_counts,
    without_inherited_network,
)
from hpkit_provider.resources.cluster.live_cluster import MAX_POLL_SECONDS, LiveCluster, has_failed
from hpkit_provider.resources.cluster.protection import require_training_plans
from hpkit_provider.resources.cluster.update_request import (
    next_update,
    rejected_changes,
    removed_autoscaled_groups,
    settled,
    undeclared_groups,
    undone_images,
)
from hpkit_provider.resources.handler import MAX_UPDATES, Handler, ResourceDiff, ResourceState, forced_replacement
from hpkit_provider.resources.ownership import require_own
from hpkit_provider.schema.diff import same
from hpkit_provider.schema.field_table import to_api

__all__ = ["ClusterHandler"]

_SHORT_TASK_SECONDS: Final = 10.0
_LISTS: Final = ("InstanceGroups", "RestrictedInstanceGroups")


class ClusterHandler(Handler):
    """Handler of hyperpod:index:Cluster."""

    name: ClassVar[str] = "Cluster"
    seconds: ClassVar[float] = 3 * 3600.0  # MinInstanceCount alone can take three hours

    def diff(self, old: Props, new: Props, state: Props) -> ResourceDiff:
        """Compare; counts that Karpenter changes, or that are already live, are no difference.

        Changes that the API rejects, and losses that aren't allowed, are errors.
        """
        self._declare(str(state.get("clusterArn", "")), new)
        old = self._with_undisclosed(old, new, state)
        old_inputs = without_inherited_network(without_added_subnets(old, state))
        new_inputs = without_inherited_network(without_added_subnets(new, state))
        before = without_autoscaled_counts(old_inputs, new_inputs)
        after = without_autoscaled_counts(new_inputs, new_inputs)
        difference = super().diff(before, after, state)
        if difference.changes and self._is_live(difference, new, state):
            return ResourceDiff([])
        if state.get("creationFailed"):
            # Nothing ever ran on it: there is nothing to lose.
            return ResourceDiff([*difference.changes, forced_replacement("clusterStatus")])
        if difference.replaces:
            if not self._may_replace(new):
                raise RejectedError(self._replacement(difference, old_inputs, new_inputs, state))
            return difference
        rejected = [*rejected_changes(self.spec, old_inputs, new_inputs), *protection.lost_subnets(new_inputs, state)]
        if rejected:
            raise RejectedError("HyperPod can't make these changes in place:\n  " + "\n  ".join(rejected))
        lost = [group for group in self._removed_with_instances(old, new, state) if not _may_delete(new, group.name)]
        if lost:
            raise RejectedError(
                protection.deletion_rejected(lost, new.get("allowDeleteInstanceGroups", []), where=self.clients.where)
            )
        return difference

    def _with_undisclosed(self, old: Props, new: Props, state: Props) -> Props:
        """Return the old inputs with the service's values of settings whose defaults it doesn't document."""
        stated = first_stated(self.spec, old, new)
        document = self._described(state) if stated else None
        return with_live_values(old, live_inputs(self.spec, document), stated) if document else old

    def _is_live(self, difference: ResourceDiff, new: Props, state: Props) -> bool:
        """Return whether only counts differ, and the cluster already has them.

        Nodes were deleted, and the file changed.
        """
        if state.get("creationFailed") or not all(each.path.endswith(".instanceCount") for each in difference.changes):
            return False
        document = self._described(state)
        if not document or not settled(document):
            return False
        managed, live = group_names(new), live_inputs(self.spec, document)
        update = next_update(self.spec, old=new, new=new, live=live, document=document, managed=managed)
        return not update.body and not update.waits_for

    def diff_warnings(self, old: Props, new: Props, state: Props) -> list[str]:
        """Report groups that don't use added subnets, allowed losses, and unused allowances."""
        warnings = [
            f"Instance group {name} keeps its subnets: the API can't add subnets. Only new groups use new zones."
            for name in groups_with_added_subnets(old, new, state)
        ]
        if state.get("creationFailed"):
            return warnings
        warnings += [
            f"HyperPod doesn't report {member} of instance group {name}, so it isn't known whether it's {value}. "
            "It can't change, and isn't sent."
            for name, values in first_stated(self.spec, self._with_undisclosed(old, new, state), new).items()
            for member, value in values.items()
        ]
        before, after = without_added_subnets(old, state), without_added_subnets(new, state)
        replaced = bool(super().diff(before, after, state).replaces)
        removed = protection.removed_groups(old, new, state)
        if removed and not replaced and (removed_with_instances := self._removed_with_instances(old, new, state)):
            warnings.append(protection.deletion_warning(removed_with_instances))
        return [*warnings, *protection.unused_allowances(new, removed, replaced=replaced)]

    def _may_replace(self, new: Props) -> bool:
        """Return whether it may be replaced; the provider's setting also counts if the engine passes old inputs."""
        return new.get("allowReplace") is True or self.clients.allow_replace

    def _replacement(self, found: ResourceDiff, old: Props, new: Props, state: Props) -> str:
        name = str(old.get("clusterName", state.get("clusterArn", "")))
        why = protection.replacement_reasons(found.changes, old, new)
        return protection.replacement_rejected(
            name,
            why,
            nodes=protection.nodes_by_group(state),
            teams=self._teams(str(state.get("clusterArn"))),
            where=self.clients.where,
        )

    def _teams(self, arn: str) -> list[str]:
        """Return the teams with quota on a cluster; none when the service does not answer."""
        try:
            entries = self.clients.quotas.get(_short_task(), arn)
        except PluginError:
            return []
        return sorted({str(entry["ComputeQuotaTarget"]["TeamName"]) for entry in entries})

    def _removed_with_instances(self, old: Props, new: Props, state: Props) -> list[protection.RemovedGroup]:
        """Return the groups that a change deletes with instances; the service is called only if a group is removed."""
        removed = protection.removed_groups(old, new, state)
        if not removed or not state.get("clusterArn"):
            return []
        return protection.with_instances(removed, self._described(state))

    def _described(self, state: Props) -> Document | None:
        """Return the live cluster of a state, empty if it's deleted; None without an ARN or an answer."""
        if not state.get("clusterArn"):
            return None
        try:
            return LiveCluster(self.api, _short_task(), str(state["clusterArn"])).describe() or {}
        except PluginError:
            return None

    def create(self, call: EngineCall, inputs: Props) -> ResourceState:
        """Create without autoscaling, then enable it; a cluster that a killed run created is taken over."""
        arn = self._create_or_find(call, inputs)
        managed = group_names(inputs)

        def work() -> ResourceState:
            live = LiveCluster(self.api, call, arn)
            first = live.settle()
            if first is not None and classify_status(first["ClusterStatus"]) == "failed":
                raise live.failure(first)
            return self._converge(call, arn, old={}, new=inputs, managed=managed)

        return self._keeping_state(call, arn, inputs, work, managed=managed, creating=True)

    def read(self, call: EngineCall, resource_id: str, inputs: Props, state: Props) -> ResourceState | None:
        """Return the live state; undeclared groups are reported, or taken over at import."""
        document = LiveCluster(self.api, call, resource_id).describe()
        if document is None:
            return None
        arn = str(document["ClusterArn"])
        live = live_inputs(self.spec, document)
        managed = list(state.get("managedInstanceGroups", group_names(inputs or live)))
        if inputs:
            undeclared = undeclared_groups(inputs, live, managed)
            if undeclared:
                call.warn(f"Instance groups {', '.join(undeclared)} aren't in the program, and aren't changed.")
        if not inputs or "tags" in inputs:
            live["tags"] = live_tags(self.api, call, arn)
        return to_state(self.spec, document, live, inputs, managed=managed, failed=bool(state.get("creationFailed")))

    def find(self, call: EngineCall, name: str) -> Props:
        """Return ARN and inputs of a cluster; raises RejectedError if it doesn't exist."""
        document = LiveCluster(self.api, call, name).describe()
        if document is None:
            raise RejectedError(
                f"There is no HyperPod cluster {name!r} in this account and region. To fix: correct cluster.name, "
                "region or account. `aws sagemaker list-clusters` lists the clusters."
            )
        return {"clusterArn": str(document["ClusterArn"]), **live_inputs(self.spec, document)}

    def update(self, call: EngineCall, resource_id: str, *, old: Props, new: Props, state: Props) -> ResourceState:
        """Send differences from the live state, and wait until they are done."""
        self._declare(resource_id, new)
        require_training_plans(self.api, call, old, new)
        known = {*state.get("managedInstanceGroups", group_names(old)), *group_names(new)}
        managed = sorted(known.difference(removed_autoscaled_groups(old, new)))

        def work() -> ResourceState:
            live = self._converge(call, resource_id, old=old, new=new, managed=managed)
            set_tags(self.api, call, resource_id, old=old.get("tags", []), new=new.get("tags", []))
            return live

        return self._keeping_state(call, resource_id, new, work, managed=managed, creating=False)

    def delete(self, call: EngineCall, resource_id: str) -> None:
        """Delete and wait until it is gone: roles and network must outlive it."""
        live = LiveCluster(self.api, call, resource_id)
        for tries, delay in enumerate(call.delays(0.2, MAX_POLL_SECONDS)):
            if live.settle() is None:
                return
            params = {"ClusterName": resource_id}
            if live.send("delete_cluster", params, tries=tries, also_retried=frozenset({"not found"})) is None:
                call.pause(delay)
                continue
            document = live.settle()
            if document is None:
                return
            raise live.failure(document)

    def _declare(self, arn: str, new: Props) -> None:
        """Record which groups the program has, for deletions of groups; a preview might not know, and deletes none."""
        if arn and not has_unknown([new.get(member) for member in GROUPS]):
            self.clients.declared_groups.declare(arn, group_names(new))

    def _create_or_find(self, call: EngineCall, inputs: Props) -> str:
        """Return the ARN of the cluster that was created or found."""
        requested = {name: value for name, value in inputs.items() if name != "autoScaling"}
        live = LiveCluster(self.api, call, inputs["clusterName"])
        for tries, delay in enumerate(call.delays(0.3, MAX_POLL_SECONDS)):
            existing = self._existing(call, inputs)
            if existing is not None:
                if tries == 0:
                    # What a later poll finds was sent by this run, and the response was lost.
                    require_own(self.api, call, existing, inputs, name=self.name)
                return str(existing["ClusterArn"])
            if tries == 0:
                require_training_plans(self.api, call, {}, inputs)
            created = live.send("create_cluster", to_api(self.spec, requested), tries=tries)
            if created is not None:
                return str(created["ClusterArn"])
            call.pause(delay)
        raise AssertionError  # pragma: no cover - delays never end

    def _existing(self, call: EngineCall, inputs: Props) -> Document | None:
        """Return a cluster with that name if it's this program's; otherwise report the conflict."""
        document = LiveCluster(self.api, call, inputs["clusterName"]).describe()
        if document is not None and document["ClusterStatus"] == "Deleting":
            document = LiveCluster(self.api, call, str(document["ClusterArn"])).settle()
        if document is None:
            return None
        live = live_inputs(self.spec, document)
        for name in ("orchestrator", "vpcConfig"):
            if not same(self.spec.by_name[name], live.get(name, {}), inputs[name]):
                raise RejectedError(
                    f"A cluster {inputs['clusterName']!r} already exists, with another {name}: {live.get(name)}. "
                    "To fix: choose another clusterName, or `pulumi import` that cluster."
                )
        if classify_status(document["ClusterStatus"]) == "failed":
            raise RejectedError(
                f"A cluster {inputs['clusterName']!r} already exists, in status Failed: "
                f"{document.get('FailureMessage', 'no reason given')}. To fix: delete it, then run again."
            )
        return document

    def _converge(self, call: EngineCall, arn: str, *, old: Props, new: Props, managed: list[str]) -> ResourceState:
        cluster = LiveCluster(self.api, call, arn)
        delays, tries = call.delays(0.2, MAX_POLL_SECONDS), 0
        removed = removed_autoscaled_groups(old, new)
        sent: Document = {}
        is_reread = False
        for _ in range(MAX_UPDATES):
            document = cluster.settle()
            if document is None:
                raise RejectedError(f"Cluster {arn} no longer exists. To fix: run `pulumi refresh`, then `pulumi up`.")
            live = live_inputs(self.spec, document)
            update = next_update(self.spec, old=old, new=new, live=live, document=document, managed=managed)
            if not update.body:
                _require_done(cluster, document, update.waits_for)
                return self._settled_state(call, document, new, managed=managed, removed=removed)
            if update.body == sent and is_reread:
                raise cluster.rolled_back(", ".join(_changed(sent)), document)
            # What was sent is still missing: read again, because a response can be of the time before the update.
            is_reread = update.body == sent
            if is_reread or not cluster.update(update.body, tries=tries):
                tries += 1
                call.pause(next(delays))
                continue
            sent = update.body
            _require_applied(cluster, sent, document)
            if not update.waits_for:
                old = new  # newly set values were sent; from here on, only live differences count
        raise ChangeFailedError(
            f"Cluster {arn} doesn't apply some changes: {sorted(update.body)} still differ after every update."
        )

    def _settled_state(
        self, call: EngineCall, document: Document, inputs: Props, *, managed: list[str], removed: list[str]
    ) -> ResourceState:
        """Return the state; continuous provisioning adds nodes later, for which a Readiness waits."""
        live = live_inputs(self.spec, document)
        undeclared = undeclared_groups(inputs, live, [*managed, *removed])
        if undeclared:
            call.warn(f"Instance groups {', '.join(undeclared)} aren't in the program, and aren't changed.")
        if "tags" in inputs:
            live["tags"] = inputs["tags"]
        return to_state(self.spec, document, live, inputs, managed=group_names(inputs), failed=False)

    def _keeping_state(
        self,
        call: EngineCall,
        arn: str,
        inputs: Props,
        work: Callable[[], ResourceState],
        *,
        managed: list[str],
        creating: bool,
    ) -> ResourceState:
        """Run; if it ends early, the engine keeps the real state."""
        try:
            return work()
        except PluginError as error:
            if isinstance(error, RolledBackError) and not creating:
                raise
            state: Props = {**inputs, "clusterArn": arn, "clusterStatus": "Unknown", "managedInstanceGroups": managed}
            try:
                # The time is up or the run is canceled: one last call needs a separate time limit.
                document = LiveCluster(
                    self.api, EngineCall(call.urn, 20.0, threading.Event(), call.log), arn
                ).describe()
            except PluginError:
                document = None
            if document is not None:
                failed = creating and classify_status(document["ClusterStatus"]) == "failed"
                live = live_inputs(self.spec, document)
                seen = to_state(self.spec, document, live, inputs, managed=managed, failed=failed).state
                state = {**seen, **without_added_subnets(inputs, live)}
            raise InitFailedError(str(error), resource_id=arn, state=state, inputs=inputs) from None


def _require_done(cluster: LiveCluster, document: Document, waits_for: str) -> None:
    """Check a cluster that needs no further update."""
    if waits_for:
        raise RejectedError(f"{waits_for} can't change while autoScaling is enabled: disable autoScaling first.")
    if classify_status(document["ClusterStatus"]) == "failed":
        raise cluster.failure(document)


def _require_applied(cluster: LiveCluster, sent: Document, before: Document) -> None:
    """Wait until an accepted update ends, and check that it didn't fail."""
    after = cluster.settle()
    if after is not None and has_failed(after):
        raise cluster.failure(after)
    if after is not None and (undone := undone_images(sent, before, after)):
        raise cluster.rolled_back(f"image of {', '.join(undone)}", after)


def _changed(body: Document) -> list[str]:
    """Return what an UpdateCluster call changes, in words."""
    names = [group["InstanceGroupName"] for member, groups in body.items() if member in _LISTS for group in groups]
    return [*(f"instance group {name}" for name in names), *(member for member in body if member not in _LISTS)]


def _short_task() -> EngineCall:
    """Return the call of one call: a comparison has no time limit of the engine, and must not wait long."""
    return EngineCall("", _SHORT_TASK_SECONDS, threading.Event(), best_effort=True)


def _may_delete(new: Props, group: str) -> bool:
    return group in new.get("allowDeleteInstanceGroups", [])
