"""The dashboards of a stack: teams, waits and preemptions, GPUs, nodes, and one for each team that the file names."""

from typing import Any, Final

from hpkit.catalog import find_instance_type
from hpkit.grafana import queries
from hpkit.grafana.identity import uid_of
from hpkit.grafana.panels import Panel, Query, Row, dashboard
from hpkit.plan.model import Plan, TeamPlan

__all__ = ["DATA_SOURCE_NAME", "dashboards"]

DATA_SOURCE_NAME: Final = "prometheus"
_RATE: Final = "$__rate_interval"
_HOUR: Final = "1h"
_TEAM: Final = "{{team}}"
_ONE: Final = {"resource": "$resource", "flavor": "~$flavor"}
_DAYS: Final = 1
_RUN_TIME: Final = (
    "Kueue exports no run time: what is admitted on average, times the day, for each task that finished in it. What a "
    "preempted task ran before counts as well."
)
_GPU_METRICS: Final = "Of NVIDIA GPUs: the metrics are DCGM's."


def dashboards(plan: Plan) -> list[dict[str, Any]]:
    """Return the dashboards of a stack, those of the cluster first; what each panel asks is in queries."""
    spec = plan.spec.observability
    named = spec.grafana_dashboards.teams if spec else None
    teams = [team for team in plan.teams if not team.is_shared_pool and (named is None or team.name in named)]
    return [_teams(plan), _waits(plan), _gpus(plan), _nodes(plan), *(_team(plan, team) for team in teams)]


def _dashboard(
    plan: Plan, name: str, title: str, rows: tuple[Row, ...], *, by_resource: bool = False
) -> dict[str, Any]:
    return dashboard(
        uid=uid_of(plan.stack, name),
        title=f"{plan.stack}: {title}",
        rows=rows,
        data_source_uid=uid_of(plan.stack, DATA_SOURCE_NAME),
        resource=_main_resource(plan) if by_resource else None,
    )


def _main_resource(plan: Plan) -> str:
    """Return what most of the capacity is counted in: accelerators where there are any, else CPUs."""
    found = (find_instance_type(name) for name in sorted(plan.capacity))
    return next((each.accelerator_resource for each in found if each and each.accelerator_resource), "cpu")


def _team_query(expression: str, legend: str = _TEAM, label: str = "cluster_queue") -> Query:
    return Query(queries.by_team(expression, label), legend)


def _teams(plan: Plan) -> dict[str, Any]:
    share = f"100 * {queries.used(**_ONE)} / ({queries.guaranteed(**_ONE)} > 0)"
    rows = (
        Row(
            (
                Panel("Use by team", (_team_query(queries.used(**_ONE)),), stacked=True),
                Panel("Guarantee by team", (_team_query(queries.guaranteed(**_ONE)),), stacked=True),
            )
        ),
        Row(
            (
                Panel(
                    "Use of the guarantee",
                    (_team_query(share),),
                    unit="percent",
                    description="Above 100 % a team has borrowed.",
                ),
                Panel("Weighted share", (_team_query(_weighted_share()),), description="Kueue's fair-sharing value."),
            )
        ),
        Row(
            (
                Panel(
                    "Borrowed",
                    (_team_query(queries.borrowed(**_ONE)),),
                    stacked=True,
                    description="Use beyond the guarantee, instance type by instance type.",
                ),
                Panel(
                    "Idle guarantee",
                    (_team_query(queries.idle_guarantee(**_ONE)),),
                    stacked=True,
                    description="What a team does not use of its guarantee, whether others have borrowed it or not.",
                ),
            )
        ),
    )
    return _dashboard(plan, "teams", "teams", rows, by_resource=True)


def _weighted_share() -> str:
    return f"max by (cluster_queue) ({queries.selector('kueue_cluster_queue_weighted_share')})"


def _waits(plan: Plan) -> dict[str, Any]:
    preempted = queries.by_team(queries.preempted(_HOUR), "preempting_cluster_queue")
    rows = (
        Row(
            (
                Panel("Running", (_team_query(queries.running()),), stacked=True),
                Panel(
                    "Average run time, in a day",
                    (_team_query(queries.run_time(_DAYS)),),
                    unit="s",
                    description=_RUN_TIME,
                ),
            )
        ),
        Row(
            (
                Panel("Waiting", (_team_query(queries.waiting(status="active")),), stacked=True),
                Panel(
                    "Inadmissible",
                    (_team_query(queries.waiting(status="inadmissible")),),
                    stacked=True,
                    description="Kueue tries these again only when quota or usage changes.",
                ),
            )
        ),
        Row(
            (
                Panel("Average wait", (_team_query(queries.average_wait(_HOUR)),), unit="s"),
                Panel("Median wait", (_team_query(queries.waits(0.5, _HOUR)),), unit="s"),
                Panel("95 % admitted within", (_team_query(queries.waits(0.95, _HOUR)),), unit="s"),
            )
        ),
        Row(
            (
                Panel("Preempted for the team, in an hour", (Query(preempted, "{{team}} {{reason}}"),)),
                Panel(
                    "Evicted of the team, in an hour",
                    (_team_query(queries.evicted(_HOUR), "{{team}} {{reason}}"),),
                ),
            )
        ),
        Row((Panel("Admission attempts", (Query(queries.admission_attempts(_RATE), "{{result}}"),), unit="ops"),)),
    )
    return _dashboard(plan, "waits", "waits and preemptions", rows)


def _gpus(plan: Plan) -> dict[str, Any]:
    teams = {"namespace": "~hyperpod-ns-.+"}
    hot, power, tensor = (
        queries.selector(f"DCGM_FI_{name}") for name in ("DEV_GPU_TEMP", "DEV_POWER_USAGE", "PROF_PIPE_TENSOR_ACTIVE")
    )
    xid, remap = (queries.selector(f"DCGM_FI_DEV_{name}") for name in ("XID_ERRORS", "ROW_REMAP_FAILURE"))
    rows = (
        Row(
            (
                Panel(
                    "Utilization by team",
                    (_team_query(queries.gpu_utilization("namespace", **teams), label="namespace"),),
                    unit="percent",
                    description=_GPU_METRICS,
                ),
                Panel(
                    "Memory by team",
                    (_team_query(queries.gpu_memory_percent("namespace", **teams), label="namespace"),),
                    unit="percent",
                ),
            )
        ),
        Row(
            (
                Panel(
                    "Utilization by node", (Query(queries.gpu_utilization("Hostname"), "{{Hostname}}"),), unit="percent"
                ),
                Panel(
                    "Tensor cores by node",
                    (Query(f"100 * avg by (Hostname) ({tensor})", "{{Hostname}}"),),
                    unit="percent",
                ),
            )
        ),
        Row(
            (
                Panel("Hottest GPU", (Query(f"max by (Hostname) ({hot})", "{{Hostname}}"),), unit="celsius"),
                Panel("Power", (Query(f"sum by (Hostname) ({power})", "{{Hostname}}"),), unit="watt", stacked=True),
            )
        ),
        Row(
            (
                Panel(
                    "XID errors",
                    (Query(f"max by (Hostname, gpu) ({xid}) > 0"),),
                    type="table",
                    description="The last one of each GPU; NVIDIA's list of XID errors says what the number means.",
                ),
                Panel("Row remapping failed", (Query(f"max by (Hostname, gpu) ({remap}) > 0"),), type="table"),
            )
        ),
    )
    return _dashboard(plan, "gpus", "GPUs", rows)


def _nodes(plan: Plan) -> dict[str, Any]:
    health = "sagemaker_amazonaws_com_node_health_status"
    sick = queries.selector("kubelet_node_name", **{health: "!Schedulable"})
    rows = (
        Row(
            (
                Panel("Nodes by health", (Query(queries.nodes_by_health(), f"{{{{{health}}}}}"),), stacked=True),
                Panel("Nodes that are not Schedulable", (Query(f"max by (node, {health}) ({sick})"),), type="table"),
            )
        ),
        Row(
            (
                Panel("CPU", (Query(queries.node_cpu_percent(_RATE), "{{instance}}"),), unit="percent"),
                Panel("Fullest file system", (Query(queries.node_disk_percent(), "{{instance}}"),), unit="percent"),
            )
        ),
        Row((Panel("Packets dropped by EFA", (Query(queries.node_efa_drops(_RATE), "{{instance}}"),), unit="pps"),)),
    )
    return _dashboard(plan, "nodes", "nodes", rows)


def _team(plan: Plan, team: TeamPlan) -> dict[str, Any]:
    queue = {"cluster_queue": team.cluster_queue}
    of_resource = {**queue, **_ONE}
    namespace = {"namespace": team.namespace}
    preempted = queries.preempted(_HOUR, preempting_cluster_queue=team.cluster_queue)
    rows = (
        Row(
            (
                Panel(
                    "Use and guarantee",
                    (
                        Query(queries.used(**of_resource), "used"),
                        Query(queries.guaranteed(**of_resource), "guaranteed"),
                        Query(queries.borrowed(**of_resource), "borrowed"),
                    ),
                ),
                Panel(
                    "Running and waiting",
                    (Query(queries.running(**queue), "running"), Query(queries.waiting(**queue), "{{status}}")),
                    stacked=True,
                ),
            )
        ),
        Row(
            (
                Panel(
                    "Wait until admission",
                    (
                        Query(queries.average_wait(_HOUR, **queue), "average"),
                        Query(queries.waits(0.5, _HOUR, **queue), "half"),
                        Query(queries.waits(0.95, _HOUR, **queue), "95 %"),
                    ),
                    unit="s",
                ),
                Panel(
                    "Preemptions, in an hour",
                    (
                        Query(preempted, "for this team: {{reason}}"),
                        Query(queries.evicted(_HOUR, **queue), "of this team: {{reason}}"),
                    ),
                ),
            )
        ),
        Row(
            (
                Panel(
                    "Average run time, in a day",
                    (Query(queries.run_time(_DAYS, **queue), "all tasks"),),
                    unit="s",
                    description=_RUN_TIME,
                ),
            )
        ),
        Row(
            (
                Panel(
                    "GPU utilization by pod",
                    (Query(queries.gpu_utilization("pod", **namespace), "{{pod}}"),),
                    unit="percent",
                    description=_GPU_METRICS,
                ),
                Panel(
                    "GPU memory by pod",
                    (Query(queries.gpu_memory_percent("pod", **namespace), "{{pod}}"),),
                    unit="percent",
                ),
            )
        ),
    )
    return _dashboard(plan, f"team-{team.name}", f"team {team.name}", rows, by_resource=True)
