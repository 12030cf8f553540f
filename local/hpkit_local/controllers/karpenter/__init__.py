"""Managed Karpenter, stood in for: its kinds and conditions, nodes for pods that wait, and their end when empty."""

from hpkit_local.controllers.karpenter.claims import CLAIMS, Provisioner, marks
from hpkit_local.controllers.karpenter.conditions import kinds, update_status

__all__ = ["CLAIMS", "Provisioner", "kinds", "marks", "update_status"]
