"""The catalog's file about Karpenter: the schema of a NodePool's spec, from the CRD in the pinned Go module."""

import json
from typing import Any

import yaml

from hpkit.errors import InputError
from hpkit.project import project_root
from hpkit.text.compact_json import compact_json

__all__ = ["FILE", "karpenter_text"]

FILE = "infra/hpkit/catalog/data/karpenter.json"
_TOOL = "karpenter-crds"


def karpenter_text() -> str:
    """Return the data file: the CRD's requirements, without descriptions.

    If the CRD of the pinned version isn't on this machine, the file stays as it is, provided that it has that version.
    """
    from hpkit_local.cloud import TOOLS, locate

    (tool,) = [each for each in TOOLS if each.name == _TOOL]
    source = f"sigs.k8s.io/karpenter {tool.version}, pkg/apis/crds/karpenter.sh_nodepools.yaml"
    folder = locate(tool).path
    if folder is None:
        text = (project_root() / FILE).read_text(encoding="utf-8")
        if json.loads(text)["source"] != source:
            raise InputError(f"{_TOOL} {tool.version} is not here. Get it with: hpkit local doctor --fix")
        return text
    crd = yaml.safe_load((folder / "karpenter.sh_nodepools.yaml").read_text(encoding="utf-8"))
    (version,) = [each for each in crd["spec"]["versions"] if each["storage"]]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return compact_json({"source": source, "nodePool": _demands(spec)}) + "\n"


def _demands(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = ((key, each) for key, each in schema.items() if key != "description" or isinstance(each, dict))
        return {key: _demands(each) for key, each in kept}
    return [_demands(each) for each in schema] if isinstance(schema, list) else schema
