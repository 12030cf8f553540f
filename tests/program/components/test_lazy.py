"""A program loads only the parts of Pulumi's SDKs that it uses, with the same result."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpkit.program.components.lazy import PACKAGES
from tests.running import HANGS

ROOT = Path(__file__).parents[3]
# Modules of a service, or of a version of a group, except the kind of custom resources.
PARTS = r"pulumi_aws\.\w+\.|pulumi_kubernetes\.(?!apiextensions\.Custom)\w+\.(?!v\w+$)"
RECORDED = """
import json, sys
import hpkit.program.components.lazy
import yaml
from hpkit.plan.derive import derive
from hpkit.project import load_stack
from hpkit.program.recording import record
from tests.builders import typed
for stack in ("handson-dev", "enterprise-prod"):
    record(next(iter(load_stack(stack).plans.values())))
data = yaml.safe_load(open("stacks/autoscale.yaml").read())
dev = data["environments"]["dev"]
dev["autoscaling"]["nodePools"][0]["warmPool"] = {"replicas": 1, "requests": {"nvidia.com/gpu": 1}}
data["teams"][0]["registry"] = ["train"]
dev["storage"] = {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}}
record(derive(typed(data), "dev"))
# Of the AWS package each service is there from the start, as a name that loads when something of it is asked for.
loaded = [name for name, module in sys.modules.items() if type(module).__name__ != "_LazyModule"]
print(json.dumps(sorted(loaded)))
"""
NAMED = """
import hpkit.program.components.lazy
import pulumi_aws as aws, pulumi_kubernetes as k8s
from pulumi_aws.ec2.vpc import Vpc
import pulumi_kubernetes.core.v1.ConfigMap
assert aws.ec2.Vpc is Vpc
assert aws.ec2.outputs.__name__ == "pulumi_aws.ec2.outputs"
assert isinstance(k8s.core.v1.ConfigMap, type), "the resource, not the module of that name"
assert callable(aws.ec2.get_vpc_output), "what is in no module of its name"
assert aws.ec2.Vpc is Vpc, "and that loads nothing twice"
try:
    aws.ec2.Vcp
except AttributeError as error:
    assert "Vcp" in str(error)
else:
    raise AssertionError("a name that is in none of them")
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_program_loads_the_modules_of_the_resources_that_it_has():
    loaded = json.loads(run(RECORDED))
    of_packages = {package: [each for each in loaded if each.startswith(f"{package}.")] for package in PACKAGES}
    assert {package for package, modules in of_packages.items() if not modules} == set(), "each of them is used"
    assert {package: modules for package, modules in of_packages.items() if len(modules) > 20} == {}
    parts = {each.rpartition(".")[0] for each in loaded if re.match(PARTS, each)}
    assert parts <= set(PACKAGES), "no other package is loaded"


@pytest.mark.slow
def test_every_name_is_what_it_is_without():
    run(NAMED)
