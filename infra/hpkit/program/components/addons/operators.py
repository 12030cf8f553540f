"""Operators from pinned charts.

Task governance rejects StatefulSets without a queue. LeaderWorkerSet copies its labels, including the queue, to its
StatefulSets since 0.10.0 (pkg/controllers, mergeMetadata).
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from hpkit.catalog import CHARTS_FOLDER, PublishedChart, operator_charts
from hpkit.plan.model import Plan
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext

__all__ = ["Operators", "release"]


def release(
    parent: Component, chart: PublishedChart, context: DeployContext, eks: Eks, *, after: Sequence[pulumi.Resource]
) -> pulumi.Resource:
    """Return the release of a chart whose package was verified before the run: Helm trusts whatever is served."""
    return k8s.helm.v3.Release(
        chart.name,
        name=chart.name,
        namespace=chart.namespace,
        create_namespace=True,
        chart=context.in_project(f"{CHARTS_FOLDER}/{chart.file}"),
        version=chart.version,
        values=dict(chart.values) or None,
        opts=parent.child(after=after, provider=eks.kubernetes),
    )


class Operators(Component):
    """The operators in the file."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: DeployContext,
        *,
        eks: Eks,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Create it; after: the nodes, on which the operators' pods run."""
        super().__init__(name, opts=opts)
        for chart in operator_charts():
            if chart.name in plan.spec.operators:
                release(self, chart, context, eks, after=after)
        self.register_outputs({})
