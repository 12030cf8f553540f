"""The page of the articles: whatever it names is there, and a row says something once."""

import ast
import json
import re
from pathlib import Path

import pytest

from hpkit.checks import rule_by_id
from hpkit.cli import _COMMANDS
from hpkit.generate.articles import articles

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "stacks" / "schema.json").read_text(encoding="utf-8"))
ROWS = [row for article in articles() for row in article.rows]


def resolved(node):
    """Follow references, and what is besides null of what may be null."""
    while True:
        if "$ref" in node:
            node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
        elif "anyOf" in node:
            node = next(each for each in node["anyOf"] if each.get("type") != "null")
        else:
            return node


def is_key(path):
    """Say whether the organization file has a key: `*` is any name, `[]` any item."""
    node = SCHEMA
    for step in path.replace("[]", ".[]").split("."):
        node = resolved(node)
        if step == "[]":
            found = node.get("items")
        elif step == "*":
            found = node.get("additionalProperties") or next(iter(node.get("patternProperties", {}).values()), None)
        else:
            found = node.get("properties", {}).get(step)
        if not isinstance(found, dict):
            return False
        node = found
    return True


def is_there(name):
    """Say whether a test, page, file, rule, command or key of this name exists."""
    if name.startswith("hpkit "):
        return name.split()[1] in _COMMANDS
    if re.fullmatch(r"[A-Z]{3}\d{3}", name):
        return rule_by_id(name) is not None
    file, _, test = name.partition("::")
    if "/" not in file:
        return is_key(name)
    if not (ROOT / file).is_file():
        return False
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8")) if test else None
    return tree is None or test in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.says[:40])
def test_all_that_a_row_names_is_there(row):
    assert [name for name in (*row.by, *row.shown) if not is_there(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "teams[].colour",
        "hpkit fly",
        "ABC999",
        "docs/none.md",
        "tests/generate/test_articles.py::test_none",
        "teams.name",
    ],
)
def test_what_is_not_there_is_found(name):
    assert not is_there(name)


def test_nothing_is_said_twice_and_the_stacks_are_there():
    for article in articles():
        says = [row.says for row in article.rows]
        assert len(says) == len(set(says))
        assert all((ROOT / name).is_file() for name in article.stacks)


def test_nothing_is_partly_there_without_the_reason():
    assert not [row.says for row in ROWS if "partly" in row.differs and "because" not in row.differs]
    assert not [row.says for row in ROWS if not any("/" in name for name in row.shown)]
