"""The guide's program with an `aws` provider of the user's own, from `up` to `destroy`."""

import json

import pytest

from tests.program.cloud import Live, Program
from tests.program.test_platform import program_with

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(900)]


def test_a_platform_in_a_users_program_goes_up_stays_and_goes_down(instance, repository):
    live, program = Live(instance), Program(instance, "handson-dev", root=repository.folder)
    before = live.everything()
    (repository.folder / "infra" / "__main__.py").write_text(program_with())
    program.up()
    assert program.preview() == {}
    assert program.outputs() == {"cluster": live.cluster()["ClusterArn"]}
    state = json.loads(program.read("stack", "export"))["deployment"]["resources"]
    made = {each["urn"]: each["provider"] for each in state if each["custom"] and each["type"].startswith("aws:")}
    (vpc,) = (urn for urn in made if urn.endswith("::vpc"))
    assert "::ours::" in made[vpc]
    program.destroy()
    assert live.everything() == before
