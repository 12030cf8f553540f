"""The kit's own program under the real engine and the pack: AWS and Kubernetes by the local cloud's fake plugins."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from hpkit.errors import ToolError
from hpkit_local.aws.testing import running_endpoint
from hpkit_local.plugins.install import install
from hpkit_local.toolchain import tool_path
from tests.builders import findings, text_of
from tests.policies.test_agreement import platforms
from tests.program.cloud import Repository
from tests.security.test_branches import script_of

pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a copy of the repository's project, since the engine writes into the files of its stacks."""
    try:
        tools = [tool_path(name).parent for name in ("pulumi", "pulumi-language-python")]
    except ToolError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("program")
    Repository(folder)
    (folder / "policies").symlink_to(ROOT / "policies")
    (folder / "state").mkdir()
    install(folder / "home")
    with running_endpoint() as endpoint:
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, tools), str(Path(sys.prefix) / "bin"), os.environ["PATH"]]),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "local",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "AWS_ENDPOINT_URL": endpoint.url,
            "AWS_REGION": "us-west-2",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }
        yield folder, environment


def pulumi(project, *arguments):
    folder, environment = project
    done = subprocess.run(
        ["pulumi", *arguments, "--non-interactive"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def deploy(project, stack, name):
    """Run a step of deploy.yml as the runner does; return its exit code and what it said."""
    folder, environment = project
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script_of("deploy.yml", "preview", name)],
        cwd=folder,
        env=environment | {"STACK": stack, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def write(project, data):
    (project[0] / "stacks" / "acme.yaml").write_bytes(text_of(data))
    if not (project[0] / "stacks" / "Pulumi.acme-dev.yaml").is_file():
        assert pulumi(project, "stack", "init", "acme-dev")[0] == 0


def test_an_example_stack_passes_without_a_policy_file_and_one_that_forbids_counts(project):
    assert pulumi(project, "stack", "init", "autoscale-dev")[0] == 0
    code, said = deploy(project, "autoscale-dev", "Preview")
    assert code == 0, said
    assert re.search(r"\[mandatory\]", said) is None, said
    assert "[advisory]  eks-addons-pinned" in said, "the pack did run"
    (project[0] / "stacks" / "autoscale.policy.json").write_text('{"regions-allowed": {"allowed": ["eu-west-1"]}}')
    code, said = deploy(project, "autoscale-dev", "Preview")
    assert code != 0
    assert set(re.findall(r"\[mandatory\]  ([a-z-]+)", said)) == {"regions-allowed"}


@settings(
    max_examples=3,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=platforms(made=True))
def test_what_the_validator_accepts_without_a_warning_passes_a_preview_with_the_pack(project, data):
    assume(findings(data) == [])
    write(project, data)
    code, said = deploy(project, "acme-dev", "Preview")
    assert code == 0, said
    assert "[advisory]  eks-addons-pinned" in said, "the pack did run"
