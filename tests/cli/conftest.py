"""Fixtures for tests of commands."""

import pytest

from tests.examples import copy_project


@pytest.fixture
def project(tmp_path):
    """Return a project without organizations."""
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\n")
    (tmp_path / "stacks").mkdir()
    return tmp_path


@pytest.fixture
def examples(tmp_path):
    """Return a project with only the example organizations."""
    return copy_project(tmp_path)
