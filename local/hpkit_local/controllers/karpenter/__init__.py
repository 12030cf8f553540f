"""A fake of managed Karpenter: its kinds and conditions, nodes for pending pods, and removal of empty nodes."""

from hpkit_local.controllers.karpenter.claims import CLAIMS, Provisioner, marks
from hpkit_local.controllers.karpenter.conditions import kinds, update_status

__all__ = ["CLAIMS", "Provisioner", "kinds", "marks", "update_status"]
