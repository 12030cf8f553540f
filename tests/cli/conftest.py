"""What tests of commands start from."""

import pytest


@pytest.fixture
def project(tmp_path):
    """Return a project without organizations."""
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\n")
    (tmp_path / "stacks").mkdir()
    return tmp_path
