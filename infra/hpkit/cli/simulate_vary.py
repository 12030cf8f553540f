"""`hpkit simulate --vary`: one scenario under many policies, a line for each."""

import json
from collections.abc import Sequence

from hpkit.cli.tables import grid, paper, text_of
from hpkit.project import load_stack
from hpkit.scenario import Source
from hpkit.simulate.formatting import amount, percent, span
from hpkit.simulate.vary import Result, mean_wait, means, sweep, variation
from hpkit.simulate.vary import grid as combinations
from hpkit.simulate.workers import Cluster

__all__ = ["varied"]


def varied(
    source: Source,
    stack: str,
    variations: Sequence[str],
    form: str,
    *,
    seeds: Sequence[int | None],
    workers: int | None,
    on: Cluster | None = None,
) -> tuple[str, bool]:
    """Return what comes of every combination, as a table or JSON, and whether any could be simulated."""
    loaded = load_stack(stack)
    policies = combinations([variation(text) for text in variations])
    results = list(sweep(loaded, source, policies, seeds=seeds, workers=workers, on=on))
    any_ran = any(result.refused is None for result in results)
    if form == "json":
        return json.dumps([_as_dict(result) for result in results], indent=2, ensure_ascii=False) + "\n", any_ran
    names = [team.name for result in results for team in (result.reports[0].teams if result.reports else ())]
    return _table(f"{stack}, {source.file}", results, list(dict.fromkeys(names))), any_ran


def _as_dict(result: Result) -> dict[str, object]:
    return {
        "policy": {change.text: change.value for change in result.changes},
        "refused": result.refused,
        "runs": [
            {
                "warnings": list(report.warnings),
                "cluster": report.cluster.as_dict(),
                "teams": [team.as_dict() for team in report.teams],
            }
            for report in result.reports
        ],
    }


def _table(title: str, results: Sequence[Result], teams: Sequence[str]) -> str:
    console = paper()
    console.print(f"{title}: {len(results)} policies")
    keys = [change.text for change in results[0].changes]
    for number, key in enumerate(keys, 1):
        console.print(f"{number}: {key}")
    numbers = [str(number) for number, _ in enumerate(keys, 1)]
    table = grid("", *numbers, "in use", "fairness", "preempted", "never", "waited", *(f"p95 {team}" for team in teams))
    for result in results:
        values = [str(change.value) for change in result.changes]
        if result.refused is not None:
            table.add_row(*values, "refused")
            continue
        cluster = means(result.reports)
        table.add_row(
            *values,
            percent(cluster["utilization"]),
            f"{cluster['fairness']:.2f}",
            amount(cluster["preemptions"]),
            amount(cluster["never"]),
            f"{amount(cluster['waited'])} h",
            *(span(mean_wait(result.reports, team)[1]) for team in teams),
        )
    console.print(table)
    for line in dict.fromkeys(line for result in results for report in result.reports for line in report.warnings):
        console.print(f"warning: {line}")
    for result in results:
        if result.refused is not None:
            policy = ", ".join(f"{change.text}={change.value}" for change in result.changes)
            console.print(f"refused: {policy}: {result.refused}")
    return text_of(console)
