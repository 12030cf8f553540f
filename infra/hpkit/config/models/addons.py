"""EKS add-ons: versions, and how they are configured."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from hpkit.config.models.base import Api, Model

__all__ = ["Addon"]


def _json(value: Any) -> Any:
    """Return a value of a document as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _json(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_json(each) for each in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise PydanticCustomError("not_json", "not a valid JSON value")


class Addon(Model):
    """An EKS add-on. Text instead of a map sets its version."""

    # The key that a plain text sets.
    shorthand: ClassVar[str] = "version"

    version: str | None = Field(
        default=None,
        min_length=1,
        description="Version. Default: hpkit's pin, or EKS's default if there is no pin.",
        examples=["v1.13.1-eksbuild.1"],
    )
    configuration_values: Annotated[dict[str, Any], BeforeValidator(_json)] = Field(
        default={},
        description="Configuration values, as `aws eks describe-addon-configuration` lists them. They override "
        "hpkit's values.",
        examples=[{"replicaCount": 2}],
    )
    role: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="Existing IAM role of its pods; hpkit creates only the Pod Identity association.",
        examples=["arn:aws:iam::123456789012:role/addon"],
    )
    service_account_role_arn: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="Existing IAM role of its pods by the cluster's OIDC provider (IRSA); hpkit creates no role "
        "or association.",
        examples=["arn:aws:iam::123456789012:role/addon"],
    )
    pod_identity: bool = Field(
        default=True, description="False: hpkit creates no role or association, and leaves existing ones unchanged."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_version(cls, value: Any) -> Any:
        if isinstance(value, float):
            raise PydanticCustomError("version_float", "a version without quotes is a number")
        return {"version": value} if isinstance(value, str) else value
