"""Job manifests: what `hpkit job new` writes, and manifests as text."""

from dataclasses import replace

import yaml

from hpkit.cluster.jobs.checkpoints import Checkpoints
from hpkit.cluster.jobs.new import manifest, team_of
from hpkit.config.models.cluster import Taint

__all__ = ["new_job", "tainted", "text_of"]


def new_job(plan, team, path=None, **asked):
    """Return a team's new job; path: of its checkpoints; asked: what differs from a Job of one pod."""
    usual = {"kind": "job", "name": "train", "instance_type": "ml.g5.12xlarge", "count": 1, "image": "train"}
    found = team_of(plan, team)
    checkpoints = None if path is None else Checkpoints.at(path, plan, found)
    more = {**usual, "priority": None, "topology": None, "checkpoints": checkpoints, **asked}
    return manifest(plan, found, **more)


def tainted(plan, **taint):
    """Return a plan whose nodes with GPUs have a taint."""
    with_it = {"taints": (Taint(**{"effect": "NoSchedule", **taint}),)}
    specs = ((each, with_it if each.spec.name == "gpu" else {}) for each in plan.groups)
    return replace(plan, groups=tuple(replace(each, spec=each.spec.model_copy(update=more)) for each, more in specs))


def text_of(*documents):
    return yaml.safe_dump_all(documents, sort_keys=False)
