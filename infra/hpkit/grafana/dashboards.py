"""A stack's dashboards: the cluster's, and one for each team that the file lists.

`data/*.json` are dashboards as Grafana exports them, without the fields that Grafana sets. To change one, import it in
Grafana, edit it, and save its JSON model there. Each stack gets them with its own UIDs, titles and defaults.
"""

import json
from importlib.resources import files
from typing import Any, Final

from hpkit.catalog import find_instance_type
from hpkit.grafana.identity import uid_of
from hpkit.plan.model import Plan

__all__ = ["DATA_SOURCE_NAME", "dashboards"]

DATA_SOURCE_NAME: Final = "prometheus"
_OF_CLUSTER: Final = ("teams", "waits", "cluster", "gpus", "nodes")


def dashboards(plan: Plan) -> list[dict[str, Any]]:
    """Return a stack's dashboards, the cluster's first."""
    spec = plan.spec.observability
    named = spec.grafana_dashboards.teams if spec else None
    teams = [team.name for team in plan.teams if not team.is_shared_pool and (named is None or team.name in named)]
    of_cluster = (*_OF_CLUSTER, "autoscaling") if plan.spec.autoscaling else _OF_CLUSTER
    return [*(_dashboard(plan, name) for name in of_cluster), *(_dashboard(plan, "team", team) for team in teams)]


def _dashboard(plan: Plan, file: str, team: str = "") -> dict[str, Any]:
    """Return a dashboard for a stack; a team's dashboard has the team's name in place of the variable."""
    text = (files("hpkit.grafana") / "data" / f"{file}.json").read_text(encoding="utf-8")
    board: dict[str, Any] = json.loads(text.replace("$team", team) if team else text)
    chosen = {"datasource": uid_of(plan.stack, DATA_SOURCE_NAME), "resource": _main_resource(plan)}
    variables = [each for each in board["templating"]["list"] if each["name"] != "team"]
    for variable in variables:
        if value := chosen.get(variable["name"]):
            variable["current"] = {"text": value, "value": value}
    title = str(board["title"]).replace("HyperPod", plan.stack, 1)
    return {
        **board,
        "uid": uid_of(plan.stack, f"team-{team}" if team else file),
        "title": f"{title} {team}" if team else title,
        "templating": {"list": variables},
    }


def _main_resource(plan: Plan) -> str:
    """Return the resource that most of the capacity is counted in: accelerators if any exist, otherwise CPUs."""
    found = (find_instance_type(name) for name in sorted(plan.capacity))
    return next((each.accelerator_resource for each in found if each and each.accelerator_resource), "cpu")
