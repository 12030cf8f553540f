"""What the program refuses before it registers anything, without an engine."""

import os
import subprocess
import sys

import pytest

from tests.cli.test_validate import ROOT

# Runs the program up to where it would build; what the gate lets through is printed.
RUN = """
import pulumi, runpy, sys
import hpkit.components
pulumi.get_stack = lambda: "handson-dev"
hpkit.components.build = lambda plan: sys.exit(f"builds {plan.stack}")
try:
    runpy.run_path("infra/__main__.py", run_name="__main__")
except pulumi.RunError as error:
    sys.exit(f"refused: {error}")
"""


def said_with(**variables):
    known = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=ROOT, env=known | variables, capture_output=True, text=True, check=False
    )
    return done.stderr


@pytest.mark.parametrize("variables", [{}, {"AWS_ENDPOINT_URL": "https://eks.us-west-2.amazonaws.com"}])
def test_ranges_for_documents_end_a_run_on_aws_before_it_begins(variables):
    said = said_with(**variables)
    assert "refused: publicCidrs of handson-dev has " in said
    assert "203.0.113.0/24, which is for documents (RFC 5737)" in said
    assert "builds" not in said


def test_the_local_cloud_takes_them():
    assert "builds handson-dev" in said_with(AWS_ENDPOINT_URL="http://127.0.0.1:4566")
