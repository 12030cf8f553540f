"""Kubeflow's training operator as a process: it runs while a chart's Deployment has a pod for it.

kwok reports every pod as running; this one does run. The process has the arguments of its pod's container and a token
of its service account, so that the chart's RBAC is tested.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from hpkit_local.kubernetes.api import Api
from hpkit_local.processes import Identity, end, identify, spawn, write_private

__all__ = ["TRAINING_OPERATOR", "TrainingOperator"]

TRAINING_OPERATOR = "training-operator"
_LABELS = "control-plane=kubeflow-training-operator"
_IMAGE = "kubeflow/training-operator"
# No metrics or health ports, because several local clouds would use the same ones.
_NO_PORTS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
_TOKEN_SECONDS = 7 * 24 * 3600
_END_SECONDS = 4.0
_PAUSE_SECONDS = 5.0


class TrainingOperator:
    """The operator of one API server; its executable might not be installed."""

    def __init__(self, api: Api, *, kubeconfig: Path, executable: Path, logs: Path) -> None:
        self._api = api
        self._kubeconfig = kubeconfig
        self._own_kubeconfig = kubeconfig.with_name(f"{TRAINING_OPERATOR}.json")
        self._executable = executable
        self._log = logs / f"{TRAINING_OPERATOR}.log"
        self._pod = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: Identity | None = None
        self._not_before = 0.0
        self._reported = ""

    def poll(self) -> bool:
        """Start or end the process to match the pod, and return whether it runs if it should.

        Raises OSError while the API server is unavailable.
        """
        pods = {
            pod["metadata"]["uid"]: pod
            for pod in self._api.items("/api/v1/pods", labels=_LABELS)
            if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }
        if self.died():
            self._not_before = time.monotonic() + _PAUSE_SECONDS
        if self.died() or self._pod not in pods:
            self.end()
        if self._process is None and pods and time.monotonic() >= self._not_before:
            self._start(*next(iter(pods.items())))
        return self._process is not None or pods.keys() <= {self._reported}

    def died(self) -> bool:
        """Return whether it has ended by itself, which the API server doesn't show."""
        return self._process is not None and self._process.poll() is not None

    def end(self) -> None:
        """End the process, if it runs."""
        if self._process is not None:
            if self._identity is not None:
                end([self._identity], seconds=_END_SECONDS)
            self._process.wait()
            self._own_kubeconfig.unlink(missing_ok=True)
        self._process, self._identity, self._pod = None, None, ""

    def _start(self, uid: str, pod: Mapping[str, Any]) -> None:
        container = next((each for each in pod["spec"]["containers"] if _IMAGE in each["image"]), None)
        if container is None or not os.access(self._executable, os.X_OK):
            self._report(uid, pod)
            return
        self._write_kubeconfig(pod)
        arguments = [*(container.get("command") or [""])[1:], *(container.get("args") or [])]
        environment = {
            **{key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ},
            "MY_POD_NAMESPACE": pod["metadata"]["namespace"],
            "MY_POD_NAME": pod["metadata"]["name"],
            "KUBECONFIG": str(self._own_kubeconfig),
        }
        command = [str(self._executable), *arguments, *_NO_PORTS]
        self._process = spawn(command, log=self._log, environment=environment, folder=None, bound=True)
        self._pod, self._identity = uid, identify(self._process.pid)

    def _report(self, uid: str, pod: Mapping[str, Any]) -> None:
        """Report a missing executable once, where users of the pod find it."""
        if uid == self._reported:
            return
        metadata = pod["metadata"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        message = (
            f"{TRAINING_OPERATOR} isn't installed on this machine, so nothing happens: "
            f"`hpkit local doctor --fix {TRAINING_OPERATOR}` installs it"
        )
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": uid,
            },
            "type": "Warning",
            "reason": "NotInstalled",
            "message": message,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": "hpkit-local"},
        }
        self._api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)
        print(message, file=sys.stderr)
        self._reported = uid

    def _write_kubeconfig(self, pod: Mapping[str, Any]) -> None:
        """Write a kubeconfig with a token of the pod's service account."""
        metadata, account = pod["metadata"], pod["spec"].get("serviceAccountName", "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS, "boundObjectRef": bound},
        }
        folder = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}"
        token = self._api.create(f"{folder}/token", request)["status"]["token"]
        document = yaml.safe_load(self._kubeconfig.read_text(encoding="utf-8"))
        for user in document["users"]:
            user["user"] = {"token": token}
        write_private(self._own_kubeconfig, json.dumps(document).encode())
