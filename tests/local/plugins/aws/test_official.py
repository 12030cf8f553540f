"""`--plugins official`: Pulumi's own `aws` plugin on the local endpoint, and which of its calls the endpoint lacks.

Where the plugin isn't installed, the fakes are put in its place: everything but the plugin is then tested.
"""

import json
import os
import urllib.request

import pytest

from hpkit.errors import ToolError
from hpkit_local.aws.service import service_names
from hpkit_local.plugins.install import HOME, OFFICIAL, install
from tests.program.cloud import Program, Repository
from tests.running import AT_ONCE, running

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=["fakes", "released"])
def program(request, tmp_path_factory):
    root, home = tmp_path_factory.mktemp("cloud"), os.environ["HPKIT_TESTS_PULUMI_HOME"]
    with pytest.MonkeyPatch.context() as patch, running("official", root, *AT_ONCE, engine=True) as instance:
        if request.param == "fakes":
            home = str(root / "user")
            install(root / "user", "fake")
            command = root / "bin" / "aws"
            command.parent.mkdir()
            command.write_text("#!/bin/sh\n")
            command.chmod(0o755)
            patch.setenv("PATH", os.pathsep.join([str(command.parent), os.environ["PATH"]]))
        patch.setenv("PULUMI_HOME", home)
        try:
            install(instance.folder / HOME, OFFICIAL)
        except ToolError as error:
            pytest.skip(str(error))
        yield Program(instance, "handson-dev", root=Repository(tmp_path_factory.mktemp("repository")).folder)


def test_a_stack_goes_up_and_down_and_the_endpoint_has_every_call(program):
    done = program.up(check=False)
    url = program.environment["AWS_ENDPOINT_URL"]
    stats = f"http://127.0.0.1:{program._cloud.ports()['aws']}/_hpkit/stats"
    with urllib.request.urlopen(stats) as answer:
        errors = json.load(answer)["errors"]
    lacking = sorted(name.removesuffix(":UnsupportedOperation") for name in errors if ":UnsupportedOperation" in name)
    assert lacking == [], f"the endpoint lacks {', '.join(lacking)}"
    assert done.returncode == 0, done.stdout + done.stderr
    state = json.loads(program.read("stack", "export"))["deployment"]["resources"]
    (inputs,) = [each["inputs"] for each in state if each["type"] == "pulumi:providers:aws"]
    (endpoints,) = json.loads(inputs["endpoints"])
    assert endpoints.pop("s3control") == url.replace("127.0.0.1", "localhost")
    assert endpoints == {name.replace("_", ""): url for name in service_names() if name != "s3control"}
    assert (inputs["s3UsePathStyle"], inputs["skipCredentialsValidation"]) == ("true", "true")
    assert program.preview() == {}
    program.destroy()
    assert program.resources() == []
