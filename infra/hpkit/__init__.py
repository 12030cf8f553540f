"""hpkit: Amazon SageMaker HyperPod on EKS as one typed configuration."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit.program.run import Platform

__all__ = ["Platform"]


def __getattr__(name: str) -> Any:
    """Import Platform on first use, because it loads Pulumi, which the command line doesn't need."""
    if name != "Platform":
        raise AttributeError(f"module 'hpkit' has no attribute {name!r}")
    from hpkit.program.run import Platform

    return Platform
