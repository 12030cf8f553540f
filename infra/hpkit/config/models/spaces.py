"""SageMaker Spaces: JupyterLab and Code Editor as pods of the teams.

Sources: SageMaker developer guide, "Install SageMaker AI Spaces Add-on", "Set up permissions", "Web browser access";
jupyter-infra/jupyter-k8s-aws, charts/aws-hyperpod, values.yaml (names of the add-on's values).
"""

from typing import Literal

from pydantic import Field

from hpkit.config.models.base import Model

__all__ = ["Spaces", "WebUi"]


class WebUi(Model):
    """Access to spaces by a web browser, through an Application Load Balancer."""

    domain: str = Field(
        pattern=r"^(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$",
        description="Domain of the spaces, such as `spaces.acme.com`. Each space has a subdomain.",
        examples=["spaces.acme.com"],
    )
    certificate_arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/\S+$",
        description="ACM certificate for the domain and `*.<domain>`.",
        examples=["arn:aws:acm:us-west-2:123456789012:certificate/12345678-1234-1234-1234-123456789012"],
    )
    kms_key_arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/\S+$",
        description="Existing KMS key that protects the tokens of sessions.",
        examples=["arn:aws:kms:us-west-2:123456789012:key/12345678-1234-1234-1234-123456789012"],
    )
    scheme: Literal["internal", "internet-facing"] = Field(
        default="internal", description="internal: the load balancer is reachable from the VPC and connected networks."
    )


class Spaces(Model):
    """The add-on for JupyterLab and Code Editor, with its roles and the add-ons that it needs.

    Members of a team with `workloads: [spaces]` create spaces in the team's namespace, within its quota.
    """

    remote_access: bool = Field(
        default=False,
        description="true: members connect a local editor through Systems Manager. AWS bills each connected space as "
        "an advanced on-premises instance.",
    )
    web_ui: WebUi | None = Field(
        default=None,
        description="Access by a web browser, through an Application Load Balancer. Default: port forwarding only.",
    )
