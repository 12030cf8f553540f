"""What a running cluster's teams asked for, as a scenario."""

from hpkit_whatif.record.cluster import Recorded, recorded
from hpkit_whatif.record.write import Yaml, writing

__all__ = ["Recorded", "Yaml", "recorded", "writing"]
