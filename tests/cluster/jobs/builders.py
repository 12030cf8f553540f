"""Job manifests: what `hpkit job new` writes, and manifests as text."""

import yaml

from hpkit.cluster.jobs.checkpoints import Checkpoints
from hpkit.cluster.jobs.new import manifest, team_of

__all__ = ["new_job", "text_of"]


def new_job(plan, team, path=None, **asked):
    """Return a team's new job; path: of its checkpoints; asked: what differs from a Job of one pod."""
    usual = {"kind": "job", "name": "train", "instance_type": "ml.g5.12xlarge", "count": 1, "image": "train"}
    found = team_of(plan, team)
    checkpoints = None if path is None else Checkpoints.at(path, plan, found)
    more = {**usual, "priority": None, "topology": None, "checkpoints": checkpoints, **asked}
    return manifest(plan, found, **more)


def text_of(*documents):
    return yaml.safe_dump_all(documents, sort_keys=False)
