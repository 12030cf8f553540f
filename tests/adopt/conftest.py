"""The worker's local cloud, empty, and a repository in which tests adopt what runs on that cloud."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpkit_local.supervisor import control
from tests.local.aws.conftest import cloud, served
from tests.program.cloud import WRITTEN_AT_THE_END, Live, Repository

__all__ = ["Shell", "cloud", "served"]

SECONDS = 900


class Shell:
    """Run commands in the repository as a user does, with the local cloud's environment."""

    def __init__(self, instance, folder):
        given = control.environment(instance)
        path = os.pathsep.join([str(Path(sys.executable).parent), given["PATH"]])
        self.environment = {**os.environ, **given, "PATH": path, "AWS_DEFAULT_REGION": "us-west-2", "NO_COLOR": "1"}
        self.folder = folder

    def __call__(self, *command, check=True, **more):
        given = {**self.environment, **WRITTEN_AT_THE_END, **more}
        done = subprocess.run(command, cwd=self.folder, env=given, capture_output=True, text=True, timeout=SECONDS)
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        assert not check or done.returncode == 0, said
        return done


@pytest.fixture
def instance(clouds):
    return clouds.empty()


@pytest.fixture
def live(instance):
    return Live(instance)


@pytest.fixture
def repository(tmp_path):
    made = Repository(tmp_path)
    for file in (made.folder / "stacks").glob("*.yaml"):
        file.unlink()
    return made


@pytest.fixture
def shell(instance, repository):
    return Shell(instance, repository.folder)
