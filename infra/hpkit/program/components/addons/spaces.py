"""SageMaker Spaces: the roles for its add-on, and the add-on's values.

The controller's own role is that of the add-on's pods, as for every add-on. The Systems Manager connection of a space
and the router of the web UI have their own roles.

Sources: SageMaker developer guide, "Set up permissions" (roles), "Install SageMaker AI Spaces Add-on" (web UI);
jupyter-infra/jupyter-k8s-aws, charts/aws-hyperpod, values.yaml (remote access).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from hpkit.catalog import SPACES
from hpkit.config.models.spaces import Spaces as Spec
from hpkit.config.models.spaces import WebUi
from hpkit.plan.existing import ROUTER_ACCOUNT
from hpkit.plan.model import Plan
from hpkit.plan.names import spaces_role_name
from hpkit.program.components.access.pod_identity import PodRoles
from hpkit.program.components.access.roles import Roles
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext, document

__all__ = ["Spaces"]


class Spaces(Component):
    """Roles of the router and of connected spaces.

    values: the add-on's configuration values; rights: what must be in force before it is installed. Both by add-on.
    """

    values: Mapping[str, pulumi.Input[Mapping[str, Any]]]
    rights: Mapping[str, Sequence[pulumi.Resource]]

    def __init__(
        self, name: str, plan: Plan, spec: Spec, context: DeployContext, *, eks: Eks, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, opts=opts)
        rights: list[pulumi.Resource] = []
        connecting: pulumi.Output[str] | None = None
        if spec.remote_access:
            roles = Roles(self, plan, context.account)
            role = roles.make(
                "space",
                trust=document("space-trust", context.account),
                description="Spaces that are connected by Systems Manager",
                name=spaces_role_name(plan),
            )
            rights.append(roles.allow(role, "space", document("space", context.account)))
            connecting = role.arn
        if spec.web_ui is not None:
            pods = PodRoles(self, plan, context, eks)
            pods.associate(
                "spaces-router",
                ROUTER_ACCOUNT,
                description="Router of the web UI of spaces",
                existing_role=None,
                policy=document("router", key=spec.web_ui.kms_key_arn),
            )
            rights += pods.in_force("spaces-router-pod-identity")
        values = pulumi.Output.all(role=connecting).apply(lambda known: _values(spec.web_ui, known["role"]))
        self.values, self.rights = {SPACES: values}, {SPACES: rights}
        self.register_outputs({})


def _values(web: WebUi | None, role: str | None) -> dict[str, Any]:
    """Return the add-on's values; role: ARN of the role of connected spaces, None without remote access."""
    inside: dict[str, Any] = {}
    if role is not None:
        inside["remoteAccess"] = {"enabled": True, "ssmManagedNodeRole": role}
    if web is not None:
        inside["clusterWebUI"] = {
            "enabled": True,
            "domain": web.domain,
            "awsCertificateArn": web.certificate_arn,
            "alb": {"scheme": web.scheme},
            "kmsEncryptionContext": {"enabled": True},
            "traefik": {"shouldInstall": True},
            "auth": {"kmsKeyId": web.kms_key_arn},
        }
    watching = {"jupyter-k8s": {"workspacePodWatching": {"enable": True}}}
    return {**watching, **({"jupyter-k8s-aws-hyperpod": inside} if inside else {})}
