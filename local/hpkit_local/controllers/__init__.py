"""The controllers of EKS, HyperPod and task governance: what these services do in the cluster when they are called."""

from hpkit_local.controllers.callbacks import make

__all__ = ["make"]
