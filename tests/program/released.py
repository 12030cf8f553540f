"""The resources that the example stacks registered in a release: written once, compared with later programs."""

import json
import lzma
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from generate.examples import example_stacks
from hpkit.changes.steps import steps_of
from hpkit.plan.model import Plan
from hpkit.program.recording import RecordedResource
from tests.program.recorder import recorded

FOLDER = Path(__file__).parent / "releases"


@dataclass(frozen=True)
class Released:
    """The resources that a release registered for a stack."""

    plan: Plan
    resources: dict[str, RecordedResource]


def packed(recording) -> bytes:
    """Return a recording as compressed JSON; sets are sorted, so that equal recordings give equal bytes."""
    resources = {urn: asdict(resource) for urn, resource in recording.resources.items()}
    return lzma.compress(json.dumps(resources, default=sorted).encode())


def unpacked(data: bytes, plan: Plan) -> Released:
    """Return the contents of a release's file."""
    resources = {}
    for urn, kept in json.loads(lzma.decompress(data)).items():
        sets = {
            "uses": {key: frozenset(urns) for key, urns in kept["uses"].items()},
            "after": frozenset(kept["after"]),
            "ignore_changes": tuple(kept["ignore_changes"]),
            "replace_on_changes": tuple(kept.get("replace_on_changes", ())),
        }
        resources[urn] = RecordedResource(**{**kept, **sets})
    return Released(plan, resources)


def losses(before, after) -> list[str]:
    """Return what an upgrade would replace or delete, by action, type and name."""
    return [f"{step.action} {step.type} {step.name}" for step in steps_of(before, after) if step.lost]


def actions_required(changelog: str, release: str) -> set[str]:
    """Return the entries of the sections "Actions required" after a release, as `ACTION TYPE NAME`."""
    newer, heading, _ = changelog.partition(f"\n## {release}\n")
    assert heading, f"CHANGELOG.md has no heading `## {release}`"
    sections = (section.partition("\n##")[0] for section in newer.split("\n### Actions required\n")[1:])
    return {words for section in sections for words in re.findall(r"`((?:replace|delete) \S+ \S+)`", section)}


def unnamed_losses(folder: Path, changelog: str) -> dict[str, list[str]]:
    """Return what this program would replace or delete in each release's stacks without an entry in the changelog."""
    recordings = {}
    for file in sorted(folder.glob("*/*.json.xz")):
        now = recorded(file.name.partition(".")[0])
        named = actions_required(changelog, file.parent.name)
        lost = [loss for loss in losses(unpacked(file.read_bytes(), now.plan), now) if loss not in named]
        if lost:
            recordings[f"{file.parent.name}/{file.name}"] = lost
    return recordings


if __name__ == "__main__":
    folder = FOLDER / sys.argv[1]
    folder.mkdir()
    for stack in example_stacks():
        (folder / f"{stack}.json.xz").write_bytes(packed(recorded(stack)))
