"""The HyperPod inference operator: the settings that only the user knows.

Sources: SageMaker HyperPod developer guide, "Setting up your HyperPod clusters for model deployment"; Helm chart of the
operator in aws/sagemaker-hyperpod-cli.
"""

from typing import Literal

from pydantic import Field

from hpkit.config.models.base import BucketName, Model

__all__ = ["Inference"]


class Inference(Model):
    """The inference operator, as its EKS add-on, with its roles and the add-ons that it needs."""

    tls_certificate_bucket: BucketName | None = Field(
        default=None,
        description="Existing bucket for the certificates of endpoints. Default: hpkit creates one.",
        examples=["acme-certificates"],
    )
    model_buckets: tuple[BucketName, ...] = Field(
        default=(),
        # 180 characters each in a policy of at most 10,240 (IAM user guide, IAM and AWS STS quotas).
        max_length=50,
        description="Buckets that the S3 CSI driver's role can read models from, at most 50. Default: none, and the "
        "driver has no role.",
        examples=["acme-models"],
    )
    installed: tuple[
        Literal["aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver", "cert-manager", "metrics-server"], ...
    ] = Field(
        default=(), description="Prerequisites that the existing cluster already has; their add-ons aren't installed."
    )
    oidc_provider_arn: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:oidc-provider/\S+$",
        description="IAM OIDC provider of the existing EKS cluster. Default: hpkit creates one.",
        examples=["arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/0A1B2C3D4E5F"],
    )
