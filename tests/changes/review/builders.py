"""Reviews of two texts, as the command builds them from files."""

from hpkit.changes.review import FileInput, FileVersion, Review, StackInput, StackVersion, review
from hpkit.checks import check
from hpkit.config import parse, read_text
from hpkit.plan.derive import derive_all
from hpkit.plan.model import Plan
from hpkit.program.recording import Answers, Recording, record
from tests.builders import TODAY

FILE = "stacks/acme.yaml"
_RECORDED: list[tuple[Plan, tuple[str, str], Recording]] = []


def recorded(plan: Plan, stack: str, account: str) -> Recording:
    """Return what a plan registers; of one that was recorded already, as most bases were, the same."""
    for known, place, recording in _RECORDED:
        if place == (stack, account) and known == plan:
            return recording
    answers = Answers(account=account) if account else None
    _RECORDED.append((plan, (stack, account), record(plan, answers, stack=stack)))
    return _RECORDED[-1][-1]


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
