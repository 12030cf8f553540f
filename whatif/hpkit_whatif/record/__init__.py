"""Records what a running cluster's teams requested, as a scenario."""

from hpkit_whatif.record.cluster import Recorded, recorded
from hpkit_whatif.record.write import Yaml, writing

__all__ = ["Recorded", "Yaml", "recorded", "writing"]
