"""The HyperPod inference operator: what only the user knows of it.

Sources: SageMaker HyperPod developer guide, "Setting up your HyperPod clusters for model deployment"; Helm chart of the
operator in aws/sagemaker-hyperpod-cli.
"""

from typing import Literal

from pydantic import Field

from hpkit.config.base import BucketName, Model

__all__ = ["Inference"]


class Inference(Model):
    """The inference operator, as its EKS add-on, with its roles and the add-ons that it needs."""

    tls_certificate_bucket: BucketName | None = Field(
        default=None,
        description="Bucket that is there already: the operator puts the certificates of its endpoints into it. "
        "Absent: the kit makes one.",
    )
    model_buckets: tuple[BucketName, ...] = Field(
        default=(),
        description="Buckets that models are read from, by a role that the kit makes for the S3 CSI driver. Absent: "
        "none, and that driver gets no role.",
    )
    installed: tuple[
        Literal["aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver", "cert-manager", "metrics-server"], ...
    ] = Field(
        default=(),
        description="What of its prerequisites the cluster has by other means; their add-ons are not installed.",
    )
    oidc_provider_arn: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:oidc-provider/\S+$",
        description="IAM OIDC provider of an EKS cluster that has one already. Absent: the kit makes it.",
    )
