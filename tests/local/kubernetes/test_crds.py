"""CRDs as the local cloud creates them."""

from hpkit_local.kubernetes.crds import without_descriptions


def test_descriptions_are_left_out_and_fields_with_that_name_stay():
    field = {"type": "string", "description": "what it is for"}
    schema = {"description": "all of it", "properties": {"description": field}, "anyOf": [{"description": "one"}, {}]}
    assert without_descriptions(schema) == {"properties": {"description": {"type": "string"}}, "anyOf": [{}, {}]}
