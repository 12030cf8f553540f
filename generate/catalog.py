"""The limits of the SageMaker API, from botocore's service model."""

import json
from typing import Any

__all__ = ["service_model_text"]

# Everything that these refer to is kept, and the fields that select events: what users of hpkit can set.
_OPERATIONS = ("CreateCluster", "UpdateCluster", "CreateComputeQuota", "CreateClusterSchedulerConfig")
_OF_EVENTS = ("ClusterEventLevel", "ClusterStatus")
_KEPT = ("min", "max", "pattern", "enum")


def service_model_text() -> str:
    """Return the data file: a shape per line, with type, enum, range, length and pattern."""
    import botocore
    from botocore.loaders import Loader

    model = Loader().load_service_model("sagemaker", "service-2")
    shapes: dict[str, Any] = model["shapes"]
    inputs = [model["operations"][name]["input"]["shape"] for name in _OPERATIONS]
    shape_names = _reachable(shapes, [*inputs, *_OF_EVENTS])
    lines = [
        f"    {json.dumps(name)}: {json.dumps(_limits(shapes[name]), ensure_ascii=False)}"
        for name in sorted(shape_names)
        if _limits(shapes[name]).keys() - {"type"}
    ]
    return (
        "{\n"
        f'  "source": "botocore {botocore.__version__}, sagemaker {model["metadata"]["apiVersion"]}",\n'
        '  "shapes": {\n' + ",\n".join(lines) + "\n  }\n}\n"
    )


def _limits(shape: dict[str, Any]) -> dict[str, Any]:
    return {"type": shape["type"], **{key: shape[key] for key in _KEPT if key in shape}}


def _reachable(shapes: dict[str, Any], roots: list[str]) -> set[str]:
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        shape = shapes[name]
        inner = [*shape.get("members", {}).values()]
        inner += [shape[key] for key in ("member", "key", "value") if key in shape]
        todo += [each["shape"] for each in inner]
    return seen
