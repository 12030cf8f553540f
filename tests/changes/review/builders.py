"""Reviews of two texts, built as the command builds them from files, and tables of changes to review."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from generate.cases import Patch
from hpkit.changes.review import FileInput, FileVersion, Review, StackInput, StackVersion, review
from hpkit.changes.review.as_text import as_text
from hpkit.checks import check
from hpkit.config import parse, read_text
from hpkit.config.reading.edit import loaded
from hpkit.plan.derive import derive_all
from hpkit.plan.model import Plan
from hpkit.program.recording import Answers, Recording
from tests.builders import TODAY, text_of
from tests.changes.advice import runs
from tests.program.recorder import recording_of

FILE = "stacks/acme.yaml"
FOLDER = Path(__file__).parent


class Change(Patch):
    """A change, and what its review must contain.

    base: changes that both sides have. stacks, status: verdict and status by stack. rules: IDs of new, fixed, and
    remaining findings. watch: required risk codes. codes: all of them. losses: all lines about what teams lose. says,
    silent: what the text (columns joined by one space) and the reasons must and must not contain.
    """

    base: Patch = Patch()
    replace_all: dict[str, str] = Field(default={}, alias="replace-all")
    verdict: str = ""
    stacks: dict[str, str] = Field(default={})
    status: dict[str, str] = Field(default={})
    rules: dict[str, list[str]] = Field(default={})
    watch: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    losses: tuple[str, ...] | None = None
    says: tuple[str, ...]
    silent: tuple[str, ...] = ()


class Table:
    """The changes in a file, applied to the organization next to it."""

    def __init__(self, name: str) -> None:
        self._content = (FOLDER / f"{name}.yaml").read_text()
        self._base = (FOLDER / f"{name}.base.yaml").read_text()
        data = read_text(self._content.encode()).data
        self.changes = {key: Change.model_validate(value) for key, value in data.items()}

    def sides(self, name: str) -> tuple[bytes, bytes]:
        """Return the organization before and after a change."""
        change, written = self.changes[name], _loaded(self._content)[name]
        base = change.base.applied(self._base, written.get("base", {}))
        head = change.applied(base, written)
        for old, new in change.replace_all.items():
            head = head.replace(old, new)
        return base.encode(), head.encode()


@cache
def _loaded(content: str) -> Any:
    (table,) = loaded(content)
    return table


@cache
def review_in(table: Table, name: str) -> Review:
    """Return the review of a change, cached for all assertions about it."""
    return review_of(*table.sides(name))


def assert_findings(review: Review, change: Change) -> None:
    changes = [part.findings for part in (*review.files, *review.stacks)]
    found = {kind: [each.rule for part in changes for each in getattr(part, kind)] for kind in change.rules}
    assert found == change.rules


def codes_of(review: Review) -> set[str]:
    return {risk.code for stack in review.stacks for risk in stack.risks}


def assert_says(review: Review, change: Change) -> None:
    said = " ".join([*as_text(review, width=100_000).split(), *review.reasons])
    assert [line for line in change.says if line not in said] == [], said
    assert [line for line in change.silent if line in said] == [], said


def recorded(plan: Plan, stack: str, account: str) -> Recording:
    """Return what a plan registers in a stack of an account."""
    return recording_of(plan, Answers(account=account) if account else None, stack=stack)


def file_version(content: bytes | None) -> tuple[FileVersion | None, set[str]]:
    if content is None:
        return None, set()
    document = read_text(content)
    parsed = parse(document)
    environments = document.data.get("environments", {}) if isinstance(document.data, dict) else {}
    plans = derive_all(parsed.organization) if parsed.organization else {}
    return FileVersion(plans, tuple(check(parsed, plans, file=FILE, today=TODAY))), set(environments)


def review_of(base: bytes | None, head: bytes | None, **more) -> Review:
    before, old = file_version(base)
    after, new = file_version(head)
    stacks = [
        StackInput(
            f"acme-{name}",
            FILE,
            f"{FILE} changed",
            StackVersion(before, name) if before and (name in old or not old) else None,
            StackVersion(after, name) if after and (name in new or not new) else None,
        )
        for name in sorted(old | new)
    ]
    files = [FileInput(FILE, before, after)]
    more.setdefault("record", recorded)
    return review(files, stacks, base="main", commit="0123456789abcdef", **more)


def assert_sufficient(base: bytes, head: bytes, found: Review) -> None:
    """Follow the review's advice for each blocked stack: the files are as valid as the head, and nothing is blocked."""
    for stack in found.stacks:
        advice = [(risk.subject, risk.message) for risk in stack.risks if risk.verdict == "blocked"]
        environment = stack.stack.partition("-")[2]
        followed = runs(yaml.safe_load(base), yaml.safe_load(head), environment, advice) if advice else ()
        for sides in followed:
            texts = [text_of(side) for side in sides]
            again = review_of(*texts)
            (seen,) = [each for each in again.stacks if each.stack == stack.stack]
            refused = [risk.message for risk in seen.risks if risk.verdict == "blocked"]
            assert refused == [], yaml.safe_dump(sides[1])
            assert errors(texts[1]) <= errors(head), yaml.safe_dump(sides[1])


def errors(content: bytes) -> set[str]:
    """Return the rules for which a file has errors."""
    return {each.rule for each in file_version(content)[0].findings if each.severity == "error"}
