"""The inference operator: its roles by the cluster's OIDC provider, and what its add-on and its storage are told.

Sources: SageMaker HyperPod developer guide, "Setting up your HyperPod clusters for model deployment" and "IAM trust
relationship issue" (roles by IRSA); Terraform module hyperpod_inference_operator of awslabs/awsome-distributed-training
(service accounts, values of the add-on).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.catalog import INFERENCE_OPERATOR
from hpkit.components.base import Component, DeployContext, document
from hpkit.components.eks import Eks
from hpkit.config.inference import Inference as Spec
from hpkit.iam.account import managed_policy
from hpkit.iam.documents import (
    inference_policy,
    keda_policy,
    load_balancer_policy,
    models_policy,
    web_identity_trust,
)
from hpkit.plan.existing import makes_inference_keda
from hpkit.plan.model import Plan
from hpkit.plan.names import inference_role_name, role_name

__all__ = ["Inference"]

_NAMESPACE = "hyperpod-inference-system"
_MANAGED = "AmazonSageMakerHyperPodInferenceAccess"
_S3_CSI = "aws-mountpoint-s3-csi-driver"


class Inference(Component):
    """Roles of the operator, of the load balancer controller and of KEDA, which its add-on brings.

    values and policies: what the add-ons are told, and what their pods may do, by add-on; rights: what must be in force
    before an add-on is installed, by add-on.
    """

    values: Mapping[str, pulumi.Input[Mapping[str, Any]]]
    policies: Mapping[str, pulumi.Output[str]]
    rights: Mapping[str, Sequence[pulumi.Resource]]

    def __init__(
        self,
        name: str,
        plan: Plan,
        spec: Spec,
        context: DeployContext,
        *,
        eks: Eks,
        cluster_arn: pulumi.Output[str],
        workspace_arn: pulumi.Input[str] | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Build; workspace_arn: of Managed Prometheus, by whose metrics KEDA scales, None without one."""
        super().__init__(name, opts=opts)
        self._plan, self._eks, self._account = plan, eks, context.account
        self._made: list[pulumi.Resource] = []
        self._identity_provider = self._make_provider(spec.oidc_provider_arn)
        operator = self._role(
            "inference",
            inference_role_name(plan),
            "hyperpod-inference-controller-manager",
            "The HyperPod inference operator",
            json.dumps(inference_policy(self._account, spec.tls_certificate_bucket), sort_keys=True),
            # Endpoints that it registers with SageMaker run with its role as well.
            services=("sagemaker.amazonaws.com",),
        )
        attached = aws.iam.RolePolicyAttachment(
            f"inference-{_MANAGED}",
            role=operator.name,
            policy_arn=managed_policy(self._account, _MANAGED),
            opts=self.child(),
        )
        self._made.append(attached)
        balancers = self._role(
            "inference-load-balancers",
            role_name(plan, "inference-load-balancers"),
            "aws-load-balancer-controller",
            "The load balancer controller of the inference operator",
            json.dumps(load_balancer_policy(self._account), sort_keys=True),
        )
        keda = None
        if makes_inference_keda(plan):
            keda = self._role(
                "inference-keda",
                role_name(plan, "inference-keda"),
                "keda-operator",
                "KEDA of the inference operator",
                document(keda_policy, workspace_arn=workspace_arn),
            )
        values = pulumi.Output.all(
            operator=operator.arn,
            balancers=balancers.arn,
            keda=None if keda is None else keda.arn,
            cluster=cluster_arn,
        ).apply(lambda known: _operator_values(spec, **known))
        self.values, self.rights = {INFERENCE_OPERATOR: values}, {INFERENCE_OPERATOR: self._made}
        models = json.dumps(models_policy(self._account, spec.model_buckets), sort_keys=True)
        self.policies = {_S3_CSI: pulumi.Output.from_input(models)} if spec.model_buckets else {}
        self.register_outputs({})

    def _make_provider(self, given: str | None) -> pulumi.Output[str]:
        if given is not None:
            return pulumi.Output.from_input(given)
        # IAM knows the certificate authority of EKS, and needs no thumbprint of it.
        made = aws.iam.OpenIdConnectProvider(
            "oidc", url=self._eks.issuer, client_id_lists=["sts.amazonaws.com"], opts=self.child()
        )
        return made.arn

    def _role(
        self,
        purpose: str,
        name: str,
        service_account: str,
        description: str,
        policy: pulumi.Input[str],
        *,
        services: Sequence[str] = (),
    ) -> aws.iam.Role:
        role = aws.iam.Role(
            purpose,
            name=name,
            description=description,
            assume_role_policy=document(
                lambda provider_arn, issuer: web_identity_trust(
                    provider_arn=provider_arn,
                    issuer=issuer,
                    namespace=_NAMESPACE,
                    service_account=service_account,
                    services=services,
                ),
                provider_arn=self._identity_provider,
                issuer=self._eks.issuer,
            ),
            permissions_boundary=self._plan.spec.permissions_boundary,
            opts=self.child(),
        )
        self._made.append(aws.iam.RolePolicy(purpose, name=purpose, role=role.id, policy=policy, opts=self.child()))
        return role


def _operator_values(spec: Spec, *, operator: str, balancers: str, keda: str | None, cluster: str) -> dict[str, Any]:
    """Return the configuration of the operator's add-on; keda: None where the cluster has a KEDA of its own."""
    scaling: dict[str, Any] = {"enabled": keda is not None}
    if keda is not None:
        scaling["auth"] = {"aws": {"irsa": {"enabled": True, "roleArn": keda}}}
    return {
        "executionRoleArn": operator,
        "tlsCertificateS3Bucket": spec.tls_certificate_bucket,
        "hyperpodClusterArn": cluster,
        "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": balancers}},
        "keda": scaling,
    }
