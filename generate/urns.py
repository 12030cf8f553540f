"""The resources of each example: a URN per line, with a digest of everything that a preview compares.

Another digest is a change of existing stacks; another URN is another resource.
"""

import hashlib
import json
from dataclasses import asdict

from generate.examples import example_stacks
from hpkit.program.recording import RecordedResource, record
from hpkit.project import load_stack, project_root

__all__ = ["FOLDER", "parse_urns", "registered", "urn_files"]

FOLDER = "tests/program/urns"
# Fields that the engine doesn't compare: invented IDs, options for later changes, the plugin's version, parts of URNs.
_NOT_COMPARED = {"urn", "type", "name", "made", "replace_on_changes", "delete_before_replace", "version"}


def registered(stack: str) -> dict[str, str]:
    """Return URN → digest of the resources that the program registers for a stack of the project."""
    (plan,) = load_stack(stack).plans.values()
    return {urn: _digest(each) for urn, each in record(plan).resources.items()}


def parse_urns(text: str) -> set[str]:
    """Return the URNs in a file of this folder."""
    return {line.partition(" ")[0] for line in text.splitlines()}


def _digest(resource: RecordedResource) -> str:
    compared = {key: value for key, value in asdict(resource).items() if key not in _NOT_COMPARED}
    return hashlib.sha256(json.dumps(compared, sort_keys=True, default=sorted).encode()).hexdigest()[:12]


def _text(stack: str) -> str:
    """Return the file of one stack: the resources that it registers, and those that it registered before.

    Lines are only removed manually: existing stacks may have such a resource in their state, and it would be deleted.
    """
    file = project_root() / FOLDER / f"{stack}.txt"
    before = parse_urns(file.read_text(encoding="utf-8")) if file.is_file() else set()
    lines = {**dict.fromkeys(before, ""), **registered(stack)}
    return "".join(f"{urn} {digest}".rstrip() + "\n" for urn, digest in sorted(lines.items()))


def urn_files() -> dict[str, str]:
    """Return file → text of all example stacks."""
    return {f"{FOLDER}/{stack}.txt": _text(stack) for stack in example_stacks()}
