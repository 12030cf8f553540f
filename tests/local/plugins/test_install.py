"""The plugins of an instance: launchers of the fakes, or a link to Pulumi's own."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from hpkit_local.plugins.install import HOME, PACKAGES, install, installed
from hpkit_local.supervisor import control
from hpkit_local.supervisor.local_cloud import LocalCloud

AWS, KUBERNETES = (f"plugins/resource-{each}-v{version(f'pulumi_{each}')}/pulumi-resource-{each}" for each in PACKAGES)
BOTH_FAKE = "aws: fake, kubernetes: fake"


def launchers(home):
    return {path.relative_to(home).as_posix(): path for path in home.rglob("*") if path.is_file()}


def executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def official(tmp_path, monkeypatch):
    """Install Pulumi's own plugin in a user's PULUMI_HOME, and the AWS CLI on PATH."""
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", str(executable(tmp_path / "bin/aws").parent))
    return executable(tmp_path / "user" / KUBERNETES)


@pytest.fixture
def instance(tmp_path):
    instance = LocalCloud.named("one", root=tmp_path)
    instance.claim_ports().close()
    return instance


def test_the_launchers_lie_where_the_engine_looks_for_the_versions_of_the_sdks(tmp_path):
    install(tmp_path)
    expected = {f"plugins/resource-{each}-v{version(f'pulumi_{each}')}/pulumi-resource-{each}" for each in PACKAGES}
    assert set(launchers(tmp_path)) == expected
    assert all(os.access(path, os.X_OK) for path in launchers(tmp_path).values())


def test_a_launcher_starts_the_plugin_from_any_folder_whatever_lies_there(tmp_path):
    install(tmp_path)
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "__init__.py").write_text("raise SystemExit('the wrong module')")
    launcher = next(path for path in launchers(tmp_path).values() if path.name == "pulumi-resource-kubernetes")
    with subprocess.Popen([launcher, "127.0.0.1:1"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as plugin:
        assert plugin.stdout.readline().strip().isdigit(), "the first line is the port"
        plugin.terminate()
        assert plugin.wait(timeout=300) == 0


def test_pulumis_own_kubernetes_plugin_is_used_if_it_is_installed(official, tmp_path):
    home = tmp_path / "instance" / HOME
    assert install(home) == f"aws: fake, kubernetes: {official}"
    assert (home / KUBERNETES).resolve() == official
    assert installed(home) == "official-kubernetes"
    assert install(home, "fake") == BOTH_FAKE
    assert installed(home) == "fake"
    assert "The local cloud's fake" in (home / KUBERNETES).read_text()
    assert install(home) == BOTH_FAKE, "an instance keeps what it has"


def test_both_of_pulumis_plugins_are_used_only_where_they_were_requested(official, tmp_path):
    home = tmp_path / "instance" / HOME
    with pytest.raises(ToolError, match=r"plugin `aws` .* isn't installed.*plugin install resource aws "):
        install(home, "official")
    aws = executable(tmp_path / "user" / AWS)
    assert install(home) == f"aws: fake, kubernetes: {official}"
    assert install(home, "official") == f"aws: {aws}, kubernetes: {official}"
    assert installed(home) == "official"
    assert install(home) == f"aws: {aws}, kubernetes: {official}"


def test_a_plugin_on_path_is_official_and_the_engine_does_not_prefer_it_to_the_fake(official, instance):
    on_path = executable(Path(os.environ["PATH"]) / official.name)
    assert install(instance.folder / HOME) == f"aws: fake, kubernetes: {on_path}"
    folder = str((instance.folder / HOME / KUBERNETES).parent)
    assert folder not in control.environment(instance, tools=())["PATH"].split(os.pathsep)
    install(instance.folder / HOME, "fake")
    path = control.environment(instance, tools=())["PATH"].split(os.pathsep)
    assert path.index(folder) < path.index(str(on_path.parent))


def test_a_stack_keeps_its_plugin_and_refuses_another(official, instance, monkeypatch):
    messages: list = []
    control.take_plugins(instance, "dev", "fake", say=messages.append)
    monkeypatch.setattr("hpkit_local.supervisor.control.stacks_up", lambda _: ["dev"])
    control.take_plugins(instance, "dev", "auto", say=messages.append)
    with pytest.raises(ToolError, match="dev is up on local cloud one with --plugins fake"):
        control.take_plugins(instance, "dev", "official", say=messages.append)
    monkeypatch.setattr("hpkit_local.supervisor.control.stacks_up", lambda _: [])
    control.take_plugins(instance, "dev", "auto", say=messages.append)
    assert messages == [f"plugins: {BOTH_FAKE}"] * 2 + [f"plugins: aws: fake, kubernetes: {official}"]
