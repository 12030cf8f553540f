"""Operators from pinned charts, and the queue of what they create.

LeaderWorkerSet copies no label to its StatefulSets (0.9.0, pkg/controllers), and it isn't documented that the inference
operator copies them to its Deployments. The add-on's admission policy rejects both without a queue. The queue of a
team's namespace is always the same, so an admission policy adds it where API servers have such policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from hpkit.catalog import CHARTS_FOLDER, PublishedChart, operator_charts, version_order
from hpkit.plan.dependencies import MUTATING_SINCE
from hpkit.plan.model import Plan
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext

__all__ = ["Operators", "adds_queues", "release"]

_POLICY: Final = "hpkit-operator-queues"
_VERSION: Final = "admissionregistration.k8s.io/v1"
_LABEL: Final = "kueue.x-k8s.io/queue-name"
_ACCOUNTS: Final = ("hyperpod-inference-system", "lws-system")


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


def adds_queues(plan: Plan) -> bool:
    """Return whether an operator creates objects without a queue, and API servers can add it."""
    creates = "lws" in plan.spec.operators or plan.spec.inference is not None
    return creates and bool(plan.teams) and version_order(plan.spec.eks.version) >= version_order(MUTATING_SINCE)


class Operators(Component):
    """The file's operators, and the admission policy for what they create in teams' namespaces."""

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
        if adds_queues(plan):
            self._queues(plan, eks)
        self.register_outputs({})

    def _queues(self, plan: Plan, eks: Eks) -> None:
        accounts = " || ".join(
            f"request.userInfo.username.startsWith('system:serviceaccount:{each}:')" for each in _ACCOUNTS
        )
        namespaces = sorted(team.namespace for team in plan.teams)
        rule = {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments", "statefulsets"],
        }
        label = (
            f"JSONPatch{{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('{_LABEL}'), "
            "value: request.namespace + '-localqueue'}"
        )
        selector = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
        policy = CustomResource(
            _POLICY,
            api_version=_VERSION,
            kind="MutatingAdmissionPolicy",
            metadata={"name": _POLICY},
            spec={
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": {
                    "namespaceSelector": {"matchExpressions": [selector]},
                    "resourceRules": [rule],
                },
                "matchConditions": [
                    {"name": "created-by-an-operator", "expression": accounts},
                    {"name": "has-labels", "expression": "object.metadata.?labels.hasValue()"},
                    {"name": "has-no-queue", "expression": f"!object.metadata.?labels[?'{_LABEL}'].hasValue()"},
                ],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{label}]"}}],
            },
            opts=self.child(provider=eks.kubernetes),
        )
        CustomResource(
            f"{_POLICY}-binding",
            api_version=_VERSION,
            kind="MutatingAdmissionPolicyBinding",
            metadata={"name": _POLICY},
            spec={"policyName": _POLICY},
            opts=self.child(after=[policy], provider=eks.kubernetes),
        )
