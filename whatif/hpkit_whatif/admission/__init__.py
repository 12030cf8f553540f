"""What if: Kueue's admission as a simulator. A state in, decisions out; pure, exact and fast.

    quota = FlavorQuotas("a100", {"nvidia.com/gpu": ResourceQuota(nominal=4)})
    team = ClusterQueue("vision", cohort="all", resource_groups=(ResourceGroup(("nvidia.com/gpu",), (quota,)),))
    train = Workload("train", "vision", (PodSet("main", 4, {"nvidia.com/gpu": 1}),))
    simulator = Simulator(Model(queues=(team,)), [train])
    outcome = simulator.run_until_quiet()

All types of `hpkit.kueue` are plain data, so that a model is built without any file; `model_of` builds it from a plan.
docs/reference/whatif-api.md has an example that runs, and what every call returns and raises.
"""

from hpkit.kueue.events import Admitted, CycleResult, Event, Pending, Preempted
from hpkit.kueue.model import (
    Admission,
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    FlavorFungibility,
    FlavorQuotas,
    Model,
    Node,
    PodSet,
    PodSetAssignment,
    Preemption,
    ResourceGroup,
    ResourceQuota,
    Topology,
    TopologyRequest,
    Workload,
    per_unit,
)
from hpkit.kueue.organization import COHORT, IDLE_QUEUE, fair_sharing_of, model_of
from hpkit_whatif.admission.simulator import Simulator
from hpkit_whatif.admission.topology import Grid, NoPlaceError

__all__ = [
    "COHORT",
    "IDLE_QUEUE",
    "Admission",
    "Admitted",
    "BorrowWithinCohort",
    "ClusterQueue",
    "Cohort",
    "CycleResult",
    "Event",
    "FlavorFungibility",
    "FlavorQuotas",
    "Grid",
    "Model",
    "NoPlaceError",
    "Node",
    "Pending",
    "PodSet",
    "PodSetAssignment",
    "Preempted",
    "Preemption",
    "ResourceGroup",
    "ResourceQuota",
    "Simulator",
    "Topology",
    "TopologyRequest",
    "Workload",
    "fair_sharing_of",
    "model_of",
    "per_unit",
]
