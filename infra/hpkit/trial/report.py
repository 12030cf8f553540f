"""The report of a trial: its steps, missing permissions, long waits, and differences from the local cloud."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from hpkit.text.plural import plural

__all__ = ["ResourceTime", "StepReport", "TrialReport", "differences", "flat", "markdown"]

Status = Literal["ok", "failed", "skipped"]


class ResourceTime(TypedDict):
    """A resource that took long."""

    resource: str
    seconds: float


class StepReport(TypedDict):
    """The result of one step."""

    name: str
    title: str
    status: Status
    seconds: float
    reason: str
    facts: Annotated[dict[str, str], "Numbers of changes, and other results."]
    differences: Annotated[list[str], "Facts that a trial on the local cloud doesn't have."]
    longest: Annotated[list[ResourceTime], "The slowest resources of its Pulumi runs."]
    commands: list[str]


class TrialReport(TypedDict):
    """The result of a trial."""

    hpkit: Annotated[str, "Version of hpkit."]
    region: str
    onLocalCloud: bool
    hourly: Annotated[str, "US dollars per hour while everything exists."]
    seconds: float
    outcome: Annotated[Literal["ok", "failed"], "ok: every step succeeded, and nothing is left."]
    steps: list[StepReport]
    denied: Annotated[list[str], "Missing permissions."]
    left: Annotated[list[str], "Resources that still exist."]
    ended: Annotated[str, "Why the deletion ended before everything was deleted."]
    commands: Annotated[list[str], "Commands that delete what is left."]


def flat(facts: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Return the plain values in nested facts, as text, by their path."""
    found: dict[str, str] = {}
    for key, value in facts.items():
        place = f"{path}, {key}" if path else str(key)
        if isinstance(value, Mapping):
            found |= flat(value, place)
        else:
            found[place] = value if isinstance(value, str) else json.dumps(value)
    return found


def differences(found: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Return each fact that differs from the expected one."""
    return [
        f"{place}: {found.get(place, 'none')}; on the local cloud: {expected.get(place, 'none')}"
        for place in sorted({*found, *expected})
        if found.get(place) != expected.get(place)
    ]


def markdown(report: TrialReport) -> str:
    """Return the report as Markdown."""
    passed = sum(step["status"] == "ok" for step in report["steps"])
    where = "the local cloud" if report["onLocalCloud"] else report["region"]
    outcome = "Passed" if report["outcome"] == "ok" else "Failed"
    lines = [
        f"# Trial of hpkit {report['hpkit']} on {where}",
        "",
        f"**{outcome}**: {passed} of {plural(len(report['steps']), 'step')} in {_time(report['seconds'])}.",
        "",
        "| step | result | time | |",
        "|---|---|---:|---|",
        *(
            f"| {step['title']} | {step['status']} | {_time(step['seconds'])} | {_cell(step['reason'])} |"
            for step in report["steps"]
        ),
    ]
    slow = [
        (entry["seconds"], entry["resource"], step["name"])
        for step in report["steps"]
        for entry in step["longest"]
        if entry["seconds"] >= 1
    ]
    lines += _section(
        "Longest waits",
        [f"{_time(seconds)}: {resource} (step {name})" for seconds, resource, name in sorted(slow, reverse=True)[:10]],
        "No resource took a second.",
    )
    lines += _section("Missing permissions", report["denied"], "None.")
    differing = [f"{step['title']}: {line}" for step in report["steps"] for line in step["differences"]]
    lines += _section("Differences from the local cloud", differing, "None.")
    lines += _section("Left in the account", report["left"], "Nothing.")
    if report["ended"]:
        lines += ["", f"The deletion ended because {report['ended']}."]
    if report["commands"]:
        lines += ["", "To delete it:", "", "```console", *(f"$ {command}" for command in report["commands"]), "```"]
    return "\n".join(lines) + "\n"


def _section(title: str, items: Sequence[str], none: str) -> list[str]:
    return ["", f"## {title}", "", *([f"- {item}" for item in items] or [none])]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
