"""Values and members in the file are those that the API accepts; a new member of CreateCluster fails a test."""

import typing

import pytest
from pydantic import BaseModel

from generate.create_cluster import ELSEWHERE, without_key
from hpkit.catalog import limit
from hpkit.config.models.base import Api
from hpkit.config.models.organization import Organization


def annotations(annotation, metadata=()):
    """Yield every type inside an annotation with its metadata."""
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *marks = typing.get_args(annotation)
        yield from annotations(inner, (*metadata, *marks))
        return
    yield annotation, metadata
    if typing.get_origin(annotation) is not typing.Literal:
        for inner in typing.get_args(annotation):
            yield from annotations(inner)


def marked(model, seen):
    for name, field in model.model_fields.items():
        for annotation, metadata in annotations(field.annotation, tuple(field.metadata)):
            shapes = [mark.shape for mark in metadata if isinstance(mark, Api)]
            if shapes and limit(shapes[0]).enum:
                yield f"{model.__name__}.{name}", annotation, limit(shapes[0]).enum
            if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
                seen.add(annotation)
                yield from marked(annotation, seen)


FOUND = {name: (annotation, enum) for name, annotation, enum in marked(Organization, {Organization})}


@pytest.mark.parametrize("name", FOUND)
def test_the_values_of_a_key_are_those_of_the_api(name):
    annotation, enum = FOUND[name]
    assert set(typing.get_args(annotation)) == set(enum)


def test_every_enumeration_was_looked_at():
    assert {"ClusterPolicy.fair_share", "Sharing.strategy", "InstanceGroup.deep_health_checks"} <= FOUND.keys()


def test_the_file_says_every_property_of_create_cluster():
    assert without_key() == ELSEWHERE
