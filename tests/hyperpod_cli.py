"""Runs the real HyperPod CLI, in a separate environment, as a user who has assumed a role."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

from tests.running import HANGS

__all__ = ["aws_client", "hyperpod_cli"]

_BIN = Path(__file__).parents[1] / ".venv-hyperpod-cli" / "bin"
_REGION = "us-west-2"
# The local endpoint accepts any credentials.
_KEY = "local"


def aws_client(instance, service):
    """Return a client of the local AWS endpoint."""
    url = f"http://127.0.0.1:{instance.ports()['aws']}"
    return boto3.client(
        service, region_name=_REGION, endpoint_url=url, aws_access_key_id=_KEY, aws_secret_access_key=_KEY
    )


def hyperpod_cli(instance, folder: Path, *, namespace: str) -> Callable[..., str]:
    """Return a function that runs `hyp` as a role, with the cluster's context set, and returns its output.

    Skips the test if the CLI isn't installed.
    """
    if not (_BIN / "hyp").exists():
        pytest.skip("the HyperPod CLI isn't installed: `make hyperpod-cli`")
    environments: dict[str, dict[str, str]] = {}

    def run(role: str, *arguments: str) -> str:
        if role not in environments:
            arn = f"arn:aws:iam::123456789012:role/{role}"
            session = aws_client(instance, "sts").assume_role(RoleArn=arn, RoleSessionName="tester")["Credentials"]
            home = folder / role
            home.mkdir()
            environments[role] = {
                **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KUBE"))},
                "AWS_ACCESS_KEY_ID": session["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": session["SecretAccessKey"],
                "AWS_SESSION_TOKEN": session["SessionToken"],
                "AWS_REGION": _REGION,
                "AWS_DEFAULT_REGION": _REGION,
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{instance.ports()['aws']}",
                "HOME": str(home),
                "KUBECONFIG": str(home / ".kube" / "config"),
                "PATH": f"{_BIN}:{os.environ['PATH']}",
            }
            own = () if role == "Admin" else ("--namespace", namespace)
            run(role, "set-cluster-context", "--cluster-name", "handson", *own)
        command = [str(_BIN / "hyp"), *arguments]
        # It sends usage data to its vendor, and reports on stderr that it couldn't.
        done = subprocess.run(
            command, env=environments[role], capture_output=True, text=True, timeout=HANGS, check=False
        )
        return done.stdout + "".join(re.findall(r"^Error: .*$", done.stderr, re.MULTILINE))

    return run
