"""Refusals of the local AWS endpoint: error codes are those of AWS, and a test triggers each refusal."""

import ast
import os
import re
import subprocess
import sys
from functools import cache

import pytest

from generate.refusals import FOLDER, depended_rules, refusals
from hpkit.project import project_root
from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.service import services

ROOT = project_root()
# Codes that no operation's model lists, because all operations of their service share them.
COMMON = {
    *("ValidationException", "SerializationException", "InvalidParameterValue", "MalformedXML"),
    # EC2's API model lists no errors; its codes are on the page of error codes.
    *("VpcLimitExceeded", "AddressLimitExceeded", "InvalidVpc.Range", "InvalidSubnet.Range", "DependencyViolation"),
    "InvalidServiceName",
    # Grafana's own API reports errors by HTTP status and message only.
    "Grafana",
    # The IAM user guide's page of common errors lists this for every service.
    "MissingAuthenticationToken",
    # S3's page of error codes lists this; its model has it for no operation.
    "InvalidBucketName",
}
# The endpoint's other tests in a separate process, which records each place that creates an error.
NOTING = """
import sys
from pathlib import Path

import pytest
from moto.core.exceptions import ServiceException

from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.grafana.http import GrafanaError

places = set()


def noting(made):
    def init(self, *arguments, **more):
        frame = sys._getframe(1)
        while frame:
            places.add(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            frame = frame.f_back
        made(self, *arguments, **more)

    return init


for kind in (ServiceException, ServiceError, GrafanaError):
    kind.__init__ = noting(kind.__init__)
passed = pytest.main(["-q", "-n", "0", "tests/local/aws", "--ignore", "tests/local/aws/test_refusals.py"])
Path(sys.argv[1]).write_text("\\n".join(places))
sys.exit(passed)
"""


@cache
def functions(file: str) -> frozenset[str]:
    return frozenset(
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    )


def test_every_named_test_exists():
    tests = [each["test"].partition("::") for each in depended_rules()]
    assert [name for file, _, name in tests if name.partition("[")[0] not in functions(file)] == []


def test_every_code_is_one_that_its_service_has():
    """Clients can't handle a code that their service doesn't have."""
    possible = {
        shape.error_code
        for service in services()
        for name in service_model(service).shape_names
        for shape in [service_model(service).shape_for(name)]
        if getattr(shape, "metadata", {}).get("exception")
    }
    codes = {each.code for each in refusals() if re.fullmatch(r"[A-Za-z.]+", each.code)}
    assert codes - possible - COMMON == set()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_test_raises_each_refusal(tmp_path):
    environment = {**os.environ, "HPKIT_NIGHTLY": "0"}
    subprocess.run([sys.executable, "-c", NOTING, tmp_path / "places"], cwd=ROOT, env=environment, check=True)
    raised = set((tmp_path / "places").read_text().split())
    places = [f"{ROOT / FOLDER / each.file}:{each.line}" for each in refusals()]
    assert [place for place in places if place not in raised] == []
