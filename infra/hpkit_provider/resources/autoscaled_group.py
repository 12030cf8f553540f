"""AutoscaledGroup: an instance group that managed Karpenter fills, as a resource that orders its deletion.

A HyperpodNodeClass must not name a deleted group. The engine updates the cluster before a NodeClass that depends on it,
and deletes last, in reverse order. A group with a separate resource is therefore deleted after the NodeClass has
released it. This resource doesn't create the group; the cluster does.
"""

from typing import ClassVar

from hpkit_provider.aws.client import Document
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.cluster.cluster_state import group_names, live_inputs
from hpkit_provider.resources.cluster.live_cluster import LiveCluster
from hpkit_provider.resources.handler import Handler, ResourceState
from hpkit_provider.schema.field_table import table

__all__ = ["AutoscaledGroupHandler"]


class AutoscaledGroupHandler(Handler):
    """Handler of hyperpod:index:AutoscaledGroup; its id is the cluster's ARN, a slash, the group's name."""

    name: ClassVar[str] = "AutoscaledGroup"
    seconds: ClassVar[float] = 2 * 3600.0  # nodes are drained first, and several groups may be waiting

    def create(self, call: EngineCall, inputs: Props) -> ResourceState:
        """Check that the cluster has it."""
        arn, group = inputs["clusterArn"], inputs["instanceGroupName"]
        document = LiveCluster(self.api, call, arn).describe()
        if document is None or group not in _groups(document):
            reason = (
                "that cluster doesn't exist"
                if document is None
                else f"its groups are {', '.join(_groups(document)) or 'none'}"
            )
            raise RejectedError(
                f"No instance group {group!r} exists in {arn}: {reason}. To fix: add it to instanceGroups of the "
                "Cluster, or run `pulumi refresh` if it was deleted."
            )
        return ResourceState(f"{arn}/{group}", inputs, inputs)

    def read(self, call: EngineCall, resource_id: str, inputs: Props, state: Props) -> ResourceState | None:
        """Return it if the cluster has it."""
        del inputs, state
        arn, group = _parts(resource_id)
        document = LiveCluster(self.api, call, arn).describe()
        if document is None or group not in _groups(document):
            return None
        found = {"clusterArn": arn, "instanceGroupName": group}
        return ResourceState(resource_id, found, found)

    def delete(self, call: EngineCall, resource_id: str) -> None:
        """Delete the group, unless the program still has it and it was only removed from Karpenter."""
        arn, group = _parts(resource_id)
        live = LiveCluster(self.api, call, arn)
        document = live.describe()
        if document is None or group in (self.clients.declared_groups.declared(arn) or ()):
            return
        if self.clients.declared_groups.declared(arn) is None and group in _groups(document):
            raise RejectedError(
                f"Instance group {group!r} is kept: this run doesn't include the cluster {arn}, so the plugin can't "
                "tell whether the program still has the group. To fix: run `pulumi up` without --target and "
                "--exclude, or destroy the cluster together with it."
            )
        with self.clients.declared_groups.exclusive(call, arn, group):
            self._remove(live, group)

    def _remove(self, live: LiveCluster, group: str) -> None:
        """Delete it, together with all other groups that wait, because the API makes one change at a time."""
        for tries, delay in enumerate(live.call.delays(0.2, 20.0)):
            document = live.settle()
            if document is None or group not in _groups(document):
                return
            waiting = sorted(self.clients.declared_groups.deleting(live.name) & set(_groups(document)))
            try:
                is_sent = live.update({"InstanceGroupsToDelete": waiting}, tries=tries)
            except RejectedError:
                document = live.describe()
                if document is None or group not in _groups(document):
                    return  # another thread was faster
                raise
            if not is_sent:
                live.call.pause(delay)
                continue
            document = live.settle()
            if document is None or group not in _groups(document):
                return
            raise live.failure_with_events(
                f"Instance group {group!r} still exists, although its deletion was accepted.", document
            )


def _parts(resource_id: str) -> tuple[str, str]:
    arn, _, group = resource_id.rpartition("/")
    if not arn.rpartition(":")[2].startswith("cluster/"):
        raise RejectedError(
            f"{resource_id!r} isn't the ID of an instance group. To fix: use CLUSTER-ARN/INSTANCE-GROUP-NAME."
        )
    return arn, group


def _groups(document: Document) -> list[str]:
    return group_names(live_inputs(table("Cluster"), document))
