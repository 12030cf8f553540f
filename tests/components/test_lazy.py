"""Of Pulumi's SDKs a program loads what it uses, and nothing is different for it."""

import json
import subprocess
import sys

import pytest

from hpkit.components.lazy import PACKAGES
from tests.running import HANGS

RECORDED = """
import json, sys
import hpkit.components.lazy
from hpkit.project import load_stack
from hpkit.recording import record
for stack in ("handson-dev", "enterprise-prod", "autoscale-dev"):
    record(next(iter(load_stack(stack).plans.values())))
print(json.dumps(sorted(sys.modules)))
"""
NAMED = """
import hpkit.components.lazy
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_program_loads_the_modules_of_the_resources_that_it_has():
    loaded = json.loads(run(RECORDED))
    of_packages = {package: [each for each in loaded if each.startswith(f"{package}.")] for package in PACKAGES}
    assert {package for package, modules in of_packages.items() if not modules} == set(), "each of them is used"
    assert {package: modules for package, modules in of_packages.items() if len(modules) > 20} == {}
    whole = [each for each in loaded if each.startswith("pulumi_aws.") and each.count(".") > 1]
    assert {each.rpartition(".")[0] for each in whole} <= set(PACKAGES), "no other package of services is loaded"


@pytest.mark.slow
def test_every_name_is_what_it_is_without():
    run(NAMED)
