"""What the program refuses before it registers anything, without an engine."""

import os
import subprocess
import sys

import pytest

from tests.cli.test_validate import ROOT

# Runs the program up to where it would build; what the gate lets through is printed.
RUN = """
import pulumi, runpy, sys
import hpkit.program.components
pulumi.get_stack = lambda: "handson-dev"
hpkit.program.components.build = lambda plan: sys.exit(f"builds {plan.stack}")
try:
    runpy.run_path("infra/__main__.py", run_name="__main__")
except pulumi.RunError as error:
    sys.exit(f"refused: {error}")
"""


def said_with(run=RUN, **variables):
    known = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", run], cwd=ROOT, env=known | variables, capture_output=True, text=True, check=False
    )
    return done.stderr


@pytest.mark.parametrize("variables", [{}, {"AWS_ENDPOINT_URL": "https://eks.us-west-2.amazonaws.com"}])
def test_ranges_for_documents_end_a_run_on_aws_before_it_begins(variables):
    said = said_with(**variables)
    assert "refused: publicCidrs of handson-dev has " in said
    assert "203.0.113.0/24, which is for documents (RFC 5737)" in said
    assert "builds" not in said


CHARTS = """
import pulumi, runpy, sys
import hpkit.program.charts.package, hpkit.program.components, hpkit.project
from pathlib import Path

pulumi.get_stack = lambda: "autoscale-dev"
hpkit.program.components.build = lambda plan: sys.exit(f"builds {plan.stack}")
hpkit.program.charts.package.ensure_package = lambda pin, *_, **__: hpkit.program.charts.package.Package(
    Path(pin.file), "0" * 64, is_pinned=pin.name != "PIN"
)
try:
    runpy.run_path("infra/__main__.py", run_name="__main__")
except pulumi.RunError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.mark.parametrize("pin", ["keda", "hyperpod-helm-chart"])
def test_a_mirror_with_another_chart_ends_a_run_on_aws_before_it_begins(pin):
    run = CHARTS.replace("PIN", pin)
    aws = said_with(run, AWS_ENDPOINT_URL="https://eks.us-west-2.amazonaws.com")
    assert f"{pin}-" in aws
    assert f"has the contents {'0' * 64}, and the kit pins " in aws
    assert "Nothing was registered" in aws
    assert "builds" not in aws
    local = said_with(run, AWS_ENDPOINT_URL="http://127.0.0.1:4566")
    assert "builds autoscale-dev" in local


def test_the_local_cloud_takes_them():
    assert "builds handson-dev" in said_with(AWS_ENDPOINT_URL="http://127.0.0.1:4566")
