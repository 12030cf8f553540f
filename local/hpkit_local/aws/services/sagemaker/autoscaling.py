"""Managed Karpenter of a cluster: switching it on and off, each with a separate status."""

from __future__ import annotations

from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.sagemaker.events import record_event
from hpkit_local.aws.services.sagemaker.records import describe

__all__ = ["set_autoscaling"]


def set_autoscaling(ctx: Context, cluster: Record, target: Record) -> None:
    """Move towards `target` ({Mode, AutoScalerType}); nothing happens when it is already so."""
    now = cluster["autoscaling"]
    if (now["Mode"] if now else "Disable") == target["Mode"]:
        return
    machine = "autoscaling.create" if target["Mode"] == "Enable" else "autoscaling.delete"
    status = ctx.begin(machine, "hyperpod.autoscaling", name=cluster["name"], mode=target["Mode"])
    cluster["autoscaling"] = {
        "Mode": target["Mode"],
        "AutoScalerType": target.get("AutoScalerType", "Karpenter"),
        "Status": status,
    }


@action("hyperpod.autoscaling")
def arrived(ctx: Context, *, name: str, mode: str, failure: str = "") -> None:
    """Karpenter runs or is gone."""
    cluster = ctx.table("clusters").get(name)
    if cluster is None or cluster["autoscaling"] is None or cluster["autoscaling"]["Mode"] != mode:
        return
    if failure:
        cluster["autoscaling"].update(Status="Failed", FailureMessage=failure)
        record_event(ctx, cluster, f"Autoscaling: {failure}", level="Error")
    elif mode == "Enable":
        ctx.controllers.autoscaling_enabled(describe(cluster))
        cluster["autoscaling"]["Status"] = MACHINES["autoscaling.create"].done
        record_event(ctx, cluster, "Autoscaling with Karpenter is enabled")
    else:
        ctx.controllers.autoscaling_disabled(describe(cluster))
        cluster["autoscaling"] = None
        record_event(ctx, cluster, "Autoscaling is disabled")
