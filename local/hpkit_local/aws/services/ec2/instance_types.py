"""Loads moto's tables of EC2 instance types only when they are used: 64 MiB, and a second of each start."""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from moto.utilities import utils

from hpkit_local.aws import api_models
from hpkit_local.aws.moto_state import before_call

__all__ = ["load_instance_types", "needs_instance_types"]

_TABLES: Final = "ec2/resources/instance_type"
_ASKING: Final = re.compile("Instance|Spot|Fleet|Launch")


@contextmanager
def _without_tables() -> Iterator[None]:
    read = utils.load_resource

    def read_others(resource: str) -> Any:
        return {} if resource.startswith(_TABLES) else read(resource)

    utils.load_resource = read_others
    try:
        yield
    finally:
        utils.load_resource = read


# Thousands of public images that HyperPod never uses: without them, saving EC2 is 20 times faster.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
# moto queries its regions from a session three times, and reads the model of EC2 each time.
api_models.share()
with _without_tables():
    from moto.ec2.models import instance_types


def needs_instance_types(operation: str) -> bool:
    """Return whether an operation of EC2 might use the tables."""
    return bool(_ASKING.search(operation))


@before_call("ec2")
def load_instance_types(operation: str) -> None:
    """Fill the tables once, as moto does on import, if an operation might use them."""
    if instance_types.INSTANCE_TYPES or not needs_instance_types(operation):
        return
    whole = runpy.run_path(str(instance_types.__file__), run_name="moto.ec2.models.whole")
    # In place, because other modules use the same objects.
    instance_types.INSTANCE_TYPES.update(whole["INSTANCE_TYPES"])
    instance_types.INSTANCE_FAMILIES.extend(whole["INSTANCE_FAMILIES"])
    instance_types.INSTANCE_TYPE_OFFERINGS.update(whole["INSTANCE_TYPE_OFFERINGS"])
    there = map(instance_types.InstanceType, instance_types.INSTANCE_TYPES)
    instance_types.InstanceTypeBackend.instance_types.extend(there)
