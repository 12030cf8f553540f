"""ChangeGuard: rejects, at preview, a change that would replace or delete resources that must not be lost.

It creates nothing. The program gives it the live IDs of what it guards. An ID that is missing, different, or no longer
known belongs to a resource that would be lost, regardless of the cause. Unless that resource's name is allowed, the run
stops.
"""

from typing import Any, ClassVar

from hpkit.catalog.differences import ranges_in_use
from hpkit.text.formatting import allowances, to_allow
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import Props, is_unknown
from hpkit_provider.resources.handler import ResourceDiff
from hpkit_provider.resources.state_only import StateOnlyHandler

__all__ = ["ChangeGuardHandler", "rejection"]

_GONE = "is no longer in the program"


class ChangeGuardHandler(StateOnlyHandler):
    """Handler of hyperpod:index:ChangeGuard."""

    name: ClassVar[str] = "ChangeGuard"
    seconds: ClassVar[float] = 60.0
    example: ClassVar[Props] = {"subject": "acme-dev", "identity": {"vpc": "vpc-0123456789abcdef0"}}

    def diff(self, old: Props, new: Props, state: Props) -> ResourceDiff:
        """Compare; what would be lost, or a version that is skipped, is an error unless it is allowed."""
        if reason := rejection(old, new):
            raise RejectedError(reason)
        return super().diff(old, new, state)

    def diff_warnings(self, old: Props, new: Props, state: Props) -> list[str]:
        """Warn about what an allowed change costs, and about unused allowances."""
        del state
        lost = _lost(old, new)
        warnings = []
        for verb in _verbs(lost):
            names = [name for name, cause in lost.items() if _verbs({name: cause}) == [verb]]
            causes = "; ".join(f"{name}: {lost[name]}" for name in names)
            warnings.append(f"This change {verb}S {_listed(names, old)}, as allowed ({causes}).")
        if ("identity" in new and not is_unknown(new["identity"])) or "parts" in new:
            warnings += [
                (
                    f"{_key(name)} lists {name.rpartition('/')[2]}, but nothing "
                    f"{'deletes' if _is_part(name) else 'replaces'} it in this change. Remove it from {_where(new)}."
                )
                for name in sorted(_allowed_names(new.get("allowReplace")) - lost.keys())
            ]
        return warnings


def rejection(old: Props, new: Props) -> str:
    """Return why a guard rejects a change of its inputs, or ""."""
    if skipped := _skipped(old.get("version"), new.get("version")):
        return f"{new['subject']}: {skipped}"
    if moved := _moved(old.get("fixed", {}), new):
        return moved
    if taken := list(ranges_in_use(old.get("ranges", {}), new.get("ranges", {}))):
        problem = f"{new['subject']}: new subnets have addresses of subnets that exist until the new ones do:"
        return "\n  ".join([problem, *taken]) + "\nTo fix: choose ranges that overlap none of the deployed ones."
    lost = _lost(old, new)
    first = _still_protected(lost, old, new)
    return _rejection(lost, first, old, new) if lost.keys() - _allowed_names(new.get("allowReplace")) or first else ""


def _lost(old: Props, new: Props) -> dict[str, str]:
    """Return what is lost, by name: previous and new value.

    IDs aren't compared if none are given, or none is known yet.
    """
    before, after = dict(old.get("parts", {})), dict(new.get("parts", {}))
    ids = old.get("identity"), new.get("identity")
    if isinstance(ids[0], dict) and isinstance(ids[1], dict):
        before, after = before | ids[0], after | ids[1]
    return {
        name: f"{called} {_fate(after, name)}" for name, called in sorted(before.items()) if after.get(name) != called
    }


def _moved(old: Props, new: Props) -> str:
    """Return why a VPC or instance groups can't change their place, or ""; an added or removed one isn't a change."""
    places, subject = new.get("fixed", {}), new["subject"]
    moved = [
        f"{name}: {old[name]} becomes {places[name]}"
        for name in sorted(old.keys() & places.keys())
        if old[name] != places[name]
    ]
    if not moved:
        return ""
    if any(change.startswith("network: ") for change in moved):
        problem = "an EKS cluster can't move to another VPC"
        remedy = (
            ". For another VPC, describe another environment. When it runs, delete this one: `hpkit aws destroy "
            f"--stack {subject}`"
        )
    else:
        problem = "an instance group can't move"
        groups = list(dict.fromkeys(change.partition(":")[0].partition(" in ")[0] for change in moved))
        names, allowed = ", ".join(groups), allowances([], {"instanceGroups": groups})
        remedy = (
            f", or rename {names}, which deletes {names} and starts new groups in the new place: "
            f"{to_allow(allowed, where=_where(new))}; remove this afterward"
        )
    return "\n  ".join([f"{subject}: {problem}:", *moved]) + f"\nTo fix: revert the change{remedy}."


def _verbs(lost: dict[str, str]) -> list[str]:
    """Return DELETE if a resource left the program, REPLACE if one is replaced, or both."""
    return sorted({"DELETE" if cause.endswith(_GONE) else "REPLACE" for cause in lost.values()})


def _fate(after: dict[str, Any], name: str) -> str:
    if name not in after:
        return _GONE
    return "is replaced" if is_unknown(after[name]) else f"becomes {after[name]}"


def _going(lost: dict[str, str], old: Props) -> list[str]:
    """Return what is lost, with the resources inside it, although they can be later in the program."""
    nested = list(old.get("nested", []))
    first = min((nested.index(name) for name in lost if name in nested), default=len(nested))
    return [*nested[first:], *sorted(set(lost) - set(nested))]


def _still_protected(lost: dict[str, str], old: Props, new: Props) -> list[str]:
    """Return what can't be deleted until a run lifts its protection.

    Its service protects it, or the engine protects what leaves the program in the state.
    """
    allowed = _allowed_names(old.get("allowReplace"))
    leaving = {name for name in lost if not _is_part(name) and name not in new.get("identity", {})} - allowed
    return [name for name in _going(lost, old) if name in leaving or name in old.get("protected", [])]


def _rejection(lost: dict[str, str], first: list[str], old: Props, new: Props) -> str:
    going, words = _going(lost, old), old.get("contents", {})
    others = _allowed_names(new.get("allowReplace")) - {*going}
    needed = [*going, *sorted(name for name in others if not _is_part(name))]  # other parts aren't deleted
    remedy = to_allow(_allowance(needed), _allowance(first), _where(new))
    return "\n  ".join(
        [
            f"This change would {' and '.join(_verbs(lost))} parts of {new['subject']}:",
            *(f"{name}: {cause}" for name, cause in lost.items()),
            "This deletes:",
            *(f"  {words.get(name, name)}" for name in going),
        ]
    ) + (f"\nTo fix: revert the change, or, {remedy}; remove this afterward.")


def _is_part(name: str) -> bool:
    """Return whether a name is that of a part, `teams/nlp`, which the engine doesn't protect."""
    return "/" in name


def _key(name: str) -> str:
    kind, part, _ = name.partition("/")
    return f"allowDelete.{kind}" if part else "allowReplace"


def _allowance(allowed: list[str]) -> str:
    """Return the settings that allow all of this."""
    parts: dict[str, list[str]] = {}
    for part_type, _, name in (name.partition("/") for name in allowed if _is_part(name)):
        parts.setdefault(part_type, []).append(name)
    return allowances([name for name in allowed if not _is_part(name)], parts)


def _listed(names: Any, old: Props) -> str:
    words = old.get("contents", {})
    return "; ".join(str(words.get(name, name)) for name in sorted(names))


def _where(new: Props) -> str:
    return str(new.get("where") or "the environment")


def _allowed_names(value: Any) -> set[str]:
    """Return the names in a list; versions before this one wrote a boolean."""
    return set(value) if isinstance(value, list) else set()


def _skipped(old: str | None, new: str | None) -> str:
    """Return the problem of a step between minor versions: EKS upgrades one at a time, and never downgrades."""
    if old is None or new is None or is_unknown(new):
        return ""
    before, after = (tuple(int(part) for part in version.split(".")) for version in (old, new))
    if after < before:
        return f"version {old} can't be downgraded to {new}. To fix: set version {old}."
    if after > (before[0], before[1] + 1):
        step = f"{before[0]}.{before[1] + 1}"
        return (
            f"version {old} can't become {new} in one step: EKS upgrades one minor version at a time. To fix: "
            f"set {step} first, run `pulumi up`, then continue."
        )
    return ""
