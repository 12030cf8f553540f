"""What a change does to what is deployed, without an engine: from two recordings of one stack to steps and judgement.

Does not: load Pulumi, ask AWS, or know what is live. A recording is what the program registers (hpkit.recording); the
real preview compares with the state, which another run may have left elsewhere.
"""

from hpkit.change.goes import GOES
from hpkit.change.judgement import PRECIOUS, Judgement
from hpkit.change.recorded import Recorded, RecordedResource
from hpkit.change.stack import StackChange, Unneeded, change
from hpkit.change.steps import Cause, Step, steps_of

__all__ = [
    "GOES",
    "PRECIOUS",
    "Cause",
    "Judgement",
    "Recorded",
    "RecordedResource",
    "StackChange",
    "Step",
    "Unneeded",
    "change",
    "steps_of",
]
