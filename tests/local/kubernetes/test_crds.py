"""CRDs as the local cloud creates them."""

from hpkit_local.kubernetes.crds import without_descriptions


def test_schemas_lose_their_descriptions_and_nothing_else():
    def crd(**more):
        named = {"type": "string", **more}
        values = {
            "default": {"description": "kept"},
            "enum": [{"description": "kept"}],
            "example": {"description": "a"},
        }
        inner = {"type": "object", **values, "properties": {"description": named, "items": named}, **more}
        schema = {
            "properties": {"spec": inner},
            "anyOf": [more, {}],
            "additionalProperties": inner,
            "not": more,
            **more,
        }
        version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
        metadata = {"name": "some", "annotations": {"description": "kept"}}
        return {"kind": "CustomResourceDefinition", "metadata": metadata, "spec": {"versions": [version]}}

    assert without_descriptions(crd(description="what it is for")) == crd()
    for malformed in ({"spec": None}, {"spec": {"versions": [None, {"schema": {"openAPIV3Schema": "x"}}]}}):
        assert without_descriptions(malformed) == malformed
