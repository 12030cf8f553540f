"""The pack under the real Pulumi engine, with the real plugin: resource, stack and remediation policies, waivers."""

import json

import pytest

from local.aws.testing import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.test_engine import ROOT, Project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


class PolicedProject(Project):
    """A project that is previewed under the pack."""

    def police(self, config=None):
        """Return what the preview said, and whether it passed."""
        self.write()
        file = self.folder / "policy.json"
        file.write_text(json.dumps(config or {}))
        arguments = ["--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(file)]
        result = self.run("preview", *arguments, check=False)
        return result.stdout + result.stderr, result.returncode == 0


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with running_endpoint() as endpoint:
        yield PolicedProject(tmp_path_factory.mktemp("policed"), endpoint, Cloud(endpoint))


def test_a_happy_stack_passes(project):
    said, passed = project.police()
    assert passed, said


def test_quota_beyond_the_capacity_of_its_cluster_fails_the_preview_before_either_is_made(project):
    rows = project.spec["quotas"]["smith"]["compute_quota_config"]["computeQuotaResources"]
    rows[0]["count"] = 2
    try:
        said, passed = project.police()
        print(said)
        assert not passed
        assert "5 × ml.g5.12xlarge reserved, 4 guaranteed (john 3, smith 2)" in said
    finally:
        rows[0]["count"] = 1
