"""The schema and CEL rules of Karpenter's CRD for NodePools."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from hpkit.catalog.instances import read_data

__all__ = ["node_pool_schema"]


@cache
def node_pool_schema() -> Mapping[str, Any]:
    """Return the schema of a NodePool's spec, as OpenAPI v3 with Kubernetes' own keys (`x-kubernetes-…`)."""
    schema: Mapping[str, Any] = read_data("karpenter.json")["nodePool"]
    return schema
