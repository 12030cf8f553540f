"""Operators that charts bring, run for real: a pod whose image has an executable here is a process on this machine.

kwok says of every pod that it runs; of these it is true. A process has the arguments of its pod's container and the
rights of its service account, by a token that is bound to the pod, so that a chart's RBAC is put to the test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from local.kubernetes.api import Api
from local.kubernetes.pki import authority, signed
from local.processes.files import write_private
from local.processes.process import Identity, end, identify, spawn

__all__ = ["OPERATORS", "Operator", "Operators"]

_TOKEN_SECONDS = 7 * 24 * 3600
_END_SECONDS = 4.0
_PAUSE_SECONDS = 5.0


@dataclass(frozen=True)
class Operator:
    """A program that runs in pods with these labels and an image of this name; `arguments` are added to the pod's.

    What a pod finds mounted: certificates, whether there is one in the folder of `--cert-dir`; namespace, the variable
    that says what is else read beside the token.
    """

    name: str
    image: str
    labels: str
    arguments: tuple[str, ...] = ()
    certificates: bool = False
    namespace: str = ""


# Neither metrics nor health: several instances would want the same ports.
_NO_PORTS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")

OPERATORS = (
    Operator(
        name="training-operator",
        image="kubeflow/training-operator",
        labels="control-plane=kubeflow-training-operator",
        arguments=_NO_PORTS,
    ),
    Operator(
        name="keda-operator",
        image="kedacore/keda",
        labels="app=keda-operator",
        # Its metrics server is not run: what it would be asked by stays on a port that nobody knows.
        arguments=(*_NO_PORTS, "--metrics-service-bind-address=127.0.0.1:0", "--enable-cert-rotation=false"),
        certificates=True,
        namespace="KEDA_CLUSTER_OBJECT_NAMESPACE",
    ),
)


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    identity: Identity | None


class Operators:
    """The processes of one API server's operator pods; `executables` are by name, and may not be there."""

    def __init__(self, api: Api, *, kubeconfig: Path, executables: Mapping[str, Path], logs: Path) -> None:
        self._api = api
        self._kubeconfig = kubeconfig
        self._executables = executables
        self._logs = logs
        self._running: dict[str, _Running] = {}
        self._not_before: dict[str, float] = {}
        self._told: set[str] = set()

    def poll(self) -> bool:
        """Start and end processes as there are pods, and say whether all run that should.

        OSError while the API server is away.
        """
        wanted = {}
        for operator in OPERATORS:
            for pod in self._api.items("/api/v1/pods", labels=operator.labels):
                if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
                    wanted[pod["metadata"]["uid"]] = (operator, pod)
        for uid in self._running.keys() - wanted.keys():
            self._end(uid)
        for uid, (operator, pod) in wanted.items():
            running = self._running.get(uid)
            if running is not None and running.process.poll() is not None:
                self._end(uid)
                self._not_before[uid] = time.monotonic() + _PAUSE_SECONDS
            if uid not in self._running and time.monotonic() >= self._not_before.get(uid, 0.0):
                self._start(uid, operator, pod)
        return self._running.keys() >= wanted.keys() - self._told

    def died(self) -> bool:
        """Say whether one has ended by itself, which nothing in the API server tells."""
        return any(each.process.poll() is not None for each in self._running.values())

    def end(self) -> None:
        """End all processes."""
        for uid in list(self._running):
            self._end(uid)

    def _start(self, uid: str, operator: Operator, pod: Mapping[str, Any]) -> None:
        container = next((each for each in pod["spec"]["containers"] if operator.image in each["image"]), None)
        executable = self._executables.get(operator.name)
        if container is None or executable is None:
            return
        if not os.access(executable, os.X_OK):
            get = f"`hpkit doctor --fix {operator.name}` builds it"
            self._tell(uid, pod, f"{operator.name} is not on this machine, so nothing acts: {get}")
            return
        own = [f"--cert-dir={self._certificates(operator.name)}"] if operator.certificates else []
        command = [*(container.get("command") or [""])[1:], *(container.get("args") or []), *operator.arguments, *own]
        environment = {
            **{key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ},
            **({operator.namespace: pod["metadata"]["namespace"]} if operator.namespace else {}),
            **_variables(container, pod),
            "KUBECONFIG": str(self._write_kubeconfig(uid, pod)),
        }
        log = self._logs / f"{operator.name}.log"
        process = spawn([str(executable), *command], log=log, environment=environment, folder=None, bound=True)
        self._running[uid] = _Running(process, identify(process.pid))

    def _end(self, uid: str) -> None:
        running = self._running.pop(uid)
        if running.identity is not None:
            end([running.identity], seconds=_END_SECONDS)
        running.process.wait()
        self._file(uid).unlink(missing_ok=True)

    def _tell(self, uid: str, pod: Mapping[str, Any], message: str) -> None:
        """Say it where who looks at the pod finds it, once."""
        if uid in self._told:
            return
        metadata = pod["metadata"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        who = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"]}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {**who, "uid": uid},
            "type": "Warning",
            "reason": "NotHere",
            "message": message,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": "hpkit-local"},
        }
        self._api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)
        print(f"operators: {message}", file=sys.stderr)
        self._told.add(uid)

    def _write_kubeconfig(self, uid: str, pod: Mapping[str, Any]) -> Path:
        """Write a kubeconfig with a token of the pod's service account."""
        metadata, account = pod["metadata"], pod["spec"].get("serviceAccountName", "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": uid}
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
        write_private(self._file(uid), json.dumps(document).encode())
        return self._file(uid)

    def _certificates(self, name: str) -> Path:
        """Write what a chart's Secret has: authority, certificate and key."""
        folder = self._kubeconfig.parent / "operators" / name
        issuer = authority(folder, f"{name}-ca")
        pair = signed(folder, name, issuer=issuer)
        for source, file in ((issuer.certificate, "ca.crt"), (pair.certificate, "tls.crt"), (pair.key, "tls.key")):
            write_private(folder / file, source.read_bytes())
        return folder

    def _file(self, uid: str) -> Path:
        return self._kubeconfig.parent / "operators" / f"{uid}.json"


def _variables(container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the container's variables: those with values, which may be empty, and the pod's name and namespace."""
    fields = {"metadata.name": pod["metadata"]["name"], "metadata.namespace": pod["metadata"]["namespace"]}
    found = {}
    for each in container.get("env") or []:
        path = ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
        value = fields.get(path) if "valueFrom" in each else each.get("value", "")
        if value is not None:
            found[each["name"]] = value
    return found
