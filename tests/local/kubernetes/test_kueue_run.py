"""If Kueue or a chart's component can't start, a line of its log states why."""

import socket
import subprocess
import sys
from pathlib import Path

import yaml

from hpkit_local.kubernetes.apiserver import write_kubeconfig
from hpkit_local.kubernetes.kueue_run import merged
from hpkit_local.kubernetes.pki import authority, signed

ROOT = Path(__file__).parents[3]


def test_a_port_that_another_program_has_is_said_without_a_traceback(tmp_path):
    issuer = authority(tmp_path / "pki", "ca")
    client = signed(tmp_path / "pki", "admin", issuer=issuer)
    write_kubeconfig(tmp_path / "kubeconfig", name="local", port=1, authority=issuer, client=client)
    (tmp_path / "config").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        folders = {
            name: tmp_path / name for name in ("kueue", "config", "manifests", "log", "kubeconfig", "front-proxy")
        }
        arguments = [text for name, folder in folders.items() for text in (f"--{name}", str(folder))]
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "hpkit_local.kubernetes.kueue_run",
                *arguments,
                "--webhook-port",
                "1",
                "--health-port",
                "1",
                "--kubelet-port",
                "1",
                "--egress-port",
                str(port),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("kueue_run: ")
    assert "Address already in use" in line
    assert str(port) in line


def test_settings_that_name_what_is_on_by_default_are_no_reason_to_restart_and_others_are():
    base = {"webhook": {"port": 1}, "featureGates": {"TopologyAwareScheduling": True, "VisibilityOnDemand": False}}
    for gates in ({}, {"TopologyAwareScheduling": True}, {"VisibilityOnDemand": True}):
        assert merged(base, yaml.safe_dump({"featureGates": gates})) == base, gates
    off = merged(base, yaml.safe_dump({"featureGates": {"TopologyAwareScheduling": False}}))
    assert off["featureGates"] == {"TopologyAwareScheduling": False, "VisibilityOnDemand": False}
