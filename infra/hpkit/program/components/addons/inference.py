"""The inference operator: its roles by the cluster's OIDC provider, and the settings of its add-on and its storage.

Sources:
- SageMaker HyperPod developer guide, "Setting up your HyperPod clusters for model deployment" and "IAM trust
  relationship issue" (roles by IRSA).
- Terraform module hyperpod_inference_operator of awslabs/awsome-distributed-training (service accounts, values of the
  add-on).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.catalog import INFERENCE_OPERATOR
from hpkit.config.models.inference import Inference as Spec
from hpkit.plan.existing import makes_certificate_bucket, makes_inference_keda
from hpkit.plan.model import Plan
from hpkit.plan.names import certificate_bucket_name, inference_role_name
from hpkit.plan.principals import is_viewer, writers_of
from hpkit.plan.protected import deletion_protected, kept
from hpkit.program.components.access.roles import Roles
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext, document
from hpkit.program.components.storage.aws_storage import harden
from hpkit.program.iam.documents import web_identity_trust

__all__ = ["Inference"]

_NAMESPACE = "hyperpod-inference-system"
_MANAGED = "AmazonSageMakerHyperPodInferenceAccess"
_S3_CSI = "aws-mountpoint-s3-csi-driver"


class Inference(Component):
    """Roles of the operator, the load balancer controller and KEDA, which its add-on installs.

    - values: configuration values, by add-on.
    - policies: permissions of the add-on's pods, by add-on.
    - rights: what must be in effect before an add-on is installed, by add-on.
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
        self._eks, self._account = eks, context.account
        self._roles = Roles(self, plan, context.account)
        self._made: list[pulumi.Resource] = []
        self._identity_provider = self._make_provider(spec.oidc_provider_arn)
        certificates = spec.tls_certificate_bucket or certificate_bucket_name(plan, self._account.id)
        operator = self._role(
            "inference",
            "hyperpod-inference-controller-manager",
            "The HyperPod inference operator",
            document("inference", self._account, certificates=certificates),
            # Endpoints that it registers with SageMaker run with its role as well.
            endpoints=True,
            name=inference_role_name(plan),
        )
        self._made.append(self._roles.attach(operator, _MANAGED, name=f"inference-{_MANAGED}"))
        if makes_certificate_bucket(plan):
            self._made += self._certificates(plan, context.caller, certificates, operator)
        balancers = self._role(
            "inference-load-balancers",
            "aws-load-balancer-controller",
            "The load balancer controller of the inference operator",
            document("load-balancers", self._account),
        )
        keda = None
        if makes_inference_keda(plan):
            keda = self._role(
                "inference-keda",
                "keda-operator",
                "KEDA of the inference operator",
                document("keda", workspace=workspace_arn, metrics="*", queues=()),
            )
        values = pulumi.Output.all(
            operator=operator.arn, balancers=balancers.arn, keda=None if keda is None else keda.arn, cluster=cluster_arn
        ).apply(lambda known: _operator_values(certificates, **known))
        self.values, self.rights = {INFERENCE_OPERATOR: values}, {INFERENCE_OPERATOR: self._made}
        buckets = [f"arn:{self._account.partition}:s3:::{bucket}" for bucket in spec.model_buckets]
        models = document("models", model_buckets=buckets, model_objects=[f"{arn}/*" for arn in buckets])
        self.policies = {_S3_CSI: models} if spec.model_buckets else {}
        self.register_outputs({})

    def _make_provider(self, given: str | None) -> pulumi.Output[str]:
        if given is not None:
            return pulumi.Output.from_input(given)
        # IAM knows the certificate authority of EKS, so no thumbprint is needed.
        provider = aws.iam.OpenIdConnectProvider(
            "oidc", url=self._eks.issuer, client_id_lists=["sts.amazonaws.com"], opts=self.child()
        )
        return provider.arn

    def _certificates(self, plan: Plan, caller: str, name: str, operator: aws.iam.Role) -> list[pulumi.Resource]:
        """Return the bucket that only the operator's role writes to, in the shape of AWS's own template.

        Source: aws/sagemaker-hyperpod-cluster-setup, tls-certificates-s3-bucket-template.
        """
        bucket = aws.s3.Bucket(
            "certificates",
            bucket=name,
            # The operator creates certificates again.
            force_destroy=not deletion_protected(plan, "bucket"),
            opts=self.child(protect=kept(plan, "bucket")),
        )
        policy = document(
            "bucket",
            bucket=bucket.arn,
            whose="Operator",
            writers=[operator.arn],
            keepers=list(writers_of(plan, caller)),
            sealed_bucket=bucket.arn if plan.spec.deployers else None,
        )
        return harden(self, "certificates", bucket, policy=policy, keep_policy=is_viewer(plan, caller))

    def _role(
        self,
        purpose: str,
        service_account: str,
        description: str,
        policy: pulumi.Input[str],
        *,
        endpoints: bool = False,
        name: str | None = None,
    ) -> aws.iam.Role:
        trust = document(
            lambda provider_arn, issuer: web_identity_trust(
                provider_arn=provider_arn,
                issuer=issuer,
                namespace=_NAMESPACE,
                service_account=service_account,
                endpoint_account=self._account if endpoints else None,
            ),
            provider_arn=self._identity_provider,
            issuer=self._eks.issuer,
        )
        role = self._roles.make(purpose, trust=trust, description=description, name=name)
        self._made.append(self._roles.allow(role, purpose, policy))
        return role


def _operator_values(
    certificates: str, *, operator: str, balancers: str, keda: str | None, cluster: str
) -> dict[str, Any]:
    """Return the configuration of the operator's add-on.

    certificates: name of their bucket; keda: None where the cluster has its own KEDA.
    """
    scaling: dict[str, Any] = {"enabled": keda is not None}
    if keda is not None:
        scaling["auth"] = {"aws": {"irsa": {"enabled": True, "roleArn": keda}}}
    return {
        "executionRoleArn": operator,
        "tlsCertificateS3Bucket": certificates,
        "hyperpodClusterArn": cluster,
        "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": balancers}},
        "keda": scaling,
    }
