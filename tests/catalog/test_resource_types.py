"""Facts about resource types: every type of the program has an entry, with its source and properties of pulumi-aws."""

import json
import sys
from collections.abc import Iterator
from typing import Any, get_args

import pulumi_aws
import pytest
from pulumi._types import input_type_types

from hpkit.catalog import TypeFacts, type_facts
from hpkit.project import project_root

DATA = json.loads((project_root() / "infra/hpkit/catalog/data/resource_types.json").read_text(encoding="utf-8"))
URNS = [
    line for file in (project_root() / "tests/program/urns").iterdir() for line in file.read_text("utf-8").splitlines()
]
# Keys of an entry that don't name properties.
NOT_PATHS = ("source", "note", "api", "calls", "more", "service", "autoname", "loss")
REGISTERED = {urn.split("::")[2].rpartition("$")[2] for urn in URNS}


def arguments_of(token: str) -> type:
    """Return pulumi_aws's class of a type's inputs.

    Through the service's package, which loads itself at first use: importing one of its modules before would leave it
    half empty for all later tests of this process.
    """
    _, place, name = token.split(":")
    module = sys.modules[getattr(getattr(pulumi_aws, place.split("/")[0]), name).__module__]
    return getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")


def classes_in(annotation: Any) -> Iterator[type]:
    """Yield the input classes in an annotation, such as the element class of a list."""
    if hasattr(annotation, "_pulumi_input_type"):
        yield annotation
    for part in get_args(annotation):
        yield from classes_in(part)


def names_of(arguments: type, path: str = "") -> set[str]:
    """Return the properties of an input class by path, including members of nested objects."""
    types = set()
    for name, annotation in input_type_types(arguments).items():
        inner = f"{path}.{name}" if path else name
        types |= {inner}.union(*(names_of(each, inner) for each in classes_in(annotation)))
    return types


@pytest.mark.parametrize("token", [each for each in DATA["types"] if each.startswith("aws:")])
def test_an_entry_names_its_source_and_properties_that_pulumi_aws_has(token):
    entry = DATA["types"][token]
    named = {path for key, paths in entry.items() if key not in NOT_PATHS for path in paths}
    assert entry["source"]
    assert named <= names_of(arguments_of(token))


def test_every_type_that_the_examples_register_has_an_entry():
    ours = {each for each in REGISTERED if each.startswith(("aws:", "hyperpod:", "kubernetes:helm"))}
    assert {each for each in ours if type_facts(each) == TypeFacts()} == set()
