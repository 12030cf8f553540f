"""Launchers of the fake plugins."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

from hpkit_local.plugins.install import PACKAGES, install
from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance


def launchers(home):
    return {path.relative_to(home).as_posix(): path for path in home.rglob("*") if path.is_file()}


def test_the_launchers_lie_where_the_engine_looks_for_the_versions_of_the_sdks(tmp_path):
    install(tmp_path)
    expected = {f"plugins/resource-{each}-v{version(f'pulumi_{each}')}/pulumi-resource-{each}" for each in PACKAGES}
    assert set(launchers(tmp_path)) == expected
    assert all(os.access(path, os.X_OK) for path in launchers(tmp_path).values())


def test_the_environment_of_an_instance_brings_the_plugins_and_downloads_none(tmp_path):
    instance = Instance.named("one", root=tmp_path)
    instance.claim_ports().close()
    told = control.environment(instance, tools=())
    assert told["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"
    assert len(launchers(Path(told["PULUMI_HOME"]))) == len(PACKAGES)


def test_a_launcher_is_written_again_only_when_it_says_something_else(tmp_path):
    install(tmp_path)
    first, second = launchers(tmp_path).values()
    before = second.stat().st_ino
    right = first.read_text()
    first.write_text("#!/bin/sh\nexit 1\n")
    install(tmp_path)
    assert first.read_text() == right
    assert second.stat().st_ino == before


def test_a_launcher_starts_the_plugin_from_any_folder_whatever_lies_there(tmp_path):
    install(tmp_path)
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "__init__.py").write_text("raise SystemExit('the wrong module')")
    launcher = next(path for path in launchers(tmp_path).values() if path.name == "pulumi-resource-kubernetes")
    with subprocess.Popen([launcher, "127.0.0.1:1"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as plugin:
        assert plugin.stdout.readline().strip().isdigit(), "the first line is the port"
        plugin.terminate()
        assert plugin.wait(timeout=300) == 0
