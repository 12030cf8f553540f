"""A recording contains what Pulumi's engine keeps of the program, so results from recordings apply to live stacks."""

import copy
import json

import pytest

from hpkit.program.recording import record
from hpkit.project import load_stack
from tests.program.states import differences

pytestmark = pytest.mark.platform


def test_the_engine_keeps_what_a_recording_says(up):
    (plan,) = load_stack("handson-dev").plans.values()
    export = json.loads(up.read("stack", "export"))
    assert list(differences(export, record(plan))) == []
    changed = copy.deepcopy(export)
    resources = {each["urn"].rpartition("$")[2]: each for each in changed["deployment"]["resources"]}
    resources["aws:ec2/vpc:Vpc::vpc"]["protect"] = False
    resources["hyperpod:index:ComputeQuota::john"]["inputs"]["computeQuotaTarget"]["fairShareWeight"] = 7
    quota, vpc = sorted(each.rpartition("$")[2].rpartition(" → ")[0] for each in differences(changed, record(plan)))[
        ::-1
    ]
    assert quota.startswith("hyperpod:index:ComputeQuota::john: computeQuotaTarget: ")
    assert vpc == "aws:ec2/vpc:Vpc::vpc: protect: False"


def test_the_state_has_the_program_s_frames_and_not_the_interpreter_s(up):
    _, *resources = json.loads(up.read("stack", "export"))["deployment"]["resources"]
    for resource in resources:
        frames = [frame.get("sourcePosition", "") for frame in resource["stackTrace"]]
        assert any("hpkit/program/components/" in frame for frame in frames), resource["urn"]
        assert not any("asyncio" in frame or "language-python-exec" in frame for frame in frames), resource["urn"]
