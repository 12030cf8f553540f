"""Runs operators from charts: a pod whose image has an executable here becomes a process on this machine.

kwok reports every pod as running; these pods do run. A process has the arguments of its pod's container. It has the
rights of its service account, through a token that is bound to the pod, so that a chart's RBAC is tested.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from hpkit_local.kubernetes.api import Api
from hpkit_local.kubernetes.control_plane import KUBELET_PORT
from hpkit_local.kubernetes.operator_table import OPERATORS, Operator
from hpkit_local.processes.files import write_private
from hpkit_local.processes.ports import free_ports
from hpkit_local.processes.process import Identity, end, identify, spawn

__all__ = ["Operators", "at_mounts", "write_mount"]

_TOKEN_SECONDS = 7 * 24 * 3600
_END_SECONDS = 4.0
_PAUSE_SECONDS = 5.0


@dataclass
class _Running:
    operator: Operator
    pod: Mapping[str, Any]
    process: subprocess.Popen[bytes]
    identity: Identity | None


class Operators:
    """The processes of one API server's operator pods; `executables` are by name, and may not be there.

    kubelet: the port on loopback of every node's kubelet.
    """

    def __init__(
        self, api: Api, *, kubeconfig: Path, executables: Mapping[str, Path], logs: Path, kubelet: int
    ) -> None:
        self._api = api
        self._kubeconfig = kubeconfig
        self._folder = kubeconfig.parent / "operators"
        self._executables = executables
        self._logs = logs
        self._kubelet = kubelet
        self._running: dict[str, _Running] = {}
        self._not_before: dict[str, float] = {}
        self._told: set[str] = set()
        self._ports = free_ports(f"{each.name}/{port}" for each in OPERATORS for port in each.serves)

    def locate(self, host: str, port: int) -> int:
        """Return the loopback port of a node's kubelet, or of a process behind a Service's address or DNS name.

        Raises LookupError with the reason if no process on this machine serves it.
        """
        name, _, namespace = host.partition(".")
        if port == KUBELET_PORT and self._api.find(f"/api/v1/nodes/{quote(host)}") is not None:
            return self._kubelet
        for service in self._api.items("/api/v1/services", cached=True):
            metadata, spec = service["metadata"], service["spec"]
            named = metadata["name"] == name and f"{namespace}.".startswith(f"{metadata['namespace']}.svc.")
            if spec.get("clusterIP") == host or named:
                return self._port_behind(f"{metadata['namespace']}/{metadata['name']}", spec, port)
        raise LookupError(f"Service {host} doesn't exist")

    def _port_behind(self, service: str, spec: Mapping[str, Any], port: int) -> int:
        target = next((each.get("targetPort", port) for each in spec.get("ports", ()) if each["port"] == port), None)
        if target is None:
            raise LookupError(f"Service {service} has no port {port}")
        selector = spec.get("selector") or {}
        for running in list(self._running.values()):
            labels = running.pod["metadata"].get("labels", {})
            found = self._ports.get(f"{running.operator.name}/{_number(target, running.pod)}")
            if selector and selector.items() <= labels.items() and found is not None:
                return found
        raise LookupError(
            f"no process on this machine serves port {port} of Service {service}: kwok simulates its pods"
        )

    def poll(self) -> bool:
        """Start and end processes to match the pods, and return whether all run that should.

        Raises OSError while the API server is unavailable.
        """
        pods = {}
        for operator in OPERATORS:
            for pod in self._api.items("/api/v1/pods", labels=operator.labels):
                if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
                    pods[pod["metadata"]["uid"]] = (operator, pod)
        for uid in self._running.keys() - pods.keys():
            self._end(uid)
        self._forget(pods)
        whole = True
        for uid, (operator, pod) in pods.items():
            running = self._running.get(uid)
            if running is not None and running.process.poll() is not None:
                self._end(uid)
                self._not_before[uid] = time.monotonic() + _PAUSE_SECONDS
            mounts = self._mount(uid, pod, _container(operator, pod))
            whole = whole and mounts is not None
            if mounts is not None and uid not in self._running and time.monotonic() >= self._not_before.get(uid, 0.0):
                self._start(uid, operator, pod, mounts)
        return whole and self._running.keys() >= pods.keys() - self._told

    def died(self) -> bool:
        """Return whether one has ended by itself, which the API server doesn't show."""
        return any(each.process.poll() is not None for each in self._running.values())

    def end(self) -> None:
        """End all processes."""
        for uid in list(self._running):
            self._end(uid)
        self._forget(())

    def _start(self, uid: str, operator: Operator, pod: Mapping[str, Any], mounts: Mapping[str, Path]) -> None:
        container = _container(operator, pod)
        executable = self._executables.get(operator.name)
        if container is None or executable is None:
            return
        if not os.access(executable, os.X_OK):
            get = f"`hpkit local doctor --fix {operator.name}` builds it"
            self._tell(uid, pod, f"{operator.name} isn't installed on this machine, so nothing happens: {get}")
            return
        namespace, kubeconfig = pod["metadata"]["namespace"], self._write_kubeconfig(uid, pod)
        arguments = [*(container.get("command") or [""])[1:], *(container.get("args") or [])]
        own = [
            each.format(namespace=namespace, kubeconfig=kubeconfig, ports=self._ports) for each in operator.arguments
        ]
        environment = {
            **{key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ},
            **({operator.variable: namespace} if operator.variable else {}),
            **_variables(container, pod),
            "KUBECONFIG": str(kubeconfig),
        }
        command = [str(executable), *(at_mounts(each, mounts) for each in arguments), *own]
        log = self._logs / f"{operator.name}.log"
        process = spawn(command, log=log, environment=environment, folder=None, bound=True)
        self._running[uid] = _Running(operator, pod, process, identify(process.pid))

    def _forget(self, pods: Container[str]) -> None:
        """Remove what pods had mounted that are none of these."""
        for folder in self._folder.glob("*/"):
            if folder.name not in pods:
                shutil.rmtree(folder)

    def _mount(self, uid: str, pod: Mapping[str, Any], container: Mapping[str, Any] | None) -> dict[str, Path] | None:
        """Write the current Secrets that a container mounts; return None if a required one is missing.

        Only whole Secrets, as in these operators' charts: no `items`, no `subPath`.
        """
        secrets = {each["name"]: each["secret"] for each in pod["spec"].get("volumes") or () if "secret" in each}
        folders = {}
        for mount in (container or {}).get("volumeMounts") or ():
            secret = secrets.get(mount["name"])
            if secret is None:
                continue
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{secret['secretName']}"
            live = self._api.find(path)
            if live is None and not secret.get("optional"):
                return None
            data = (live or {}).get("data") or {}
            folders[mount["mountPath"]] = folder = self._folder / uid / mount["name"]
            write_mount(folder, {name: base64.b64decode(value) for name, value in data.items()})
        return folders

    def _end(self, uid: str) -> None:
        running = self._running.pop(uid)
        if running.identity is not None:
            end([running.identity], seconds=_END_SECONDS)
        running.process.wait()
        self._file(uid).unlink(missing_ok=True)

    def _tell(self, uid: str, pod: Mapping[str, Any], message: str) -> None:
        """Report it once, where users of the pod find it."""
        if uid in self._told:
            return
        metadata = pod["metadata"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pod_reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
        }
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {**pod_reference, "uid": uid},
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

    def _file(self, uid: str) -> Path:
        return self._folder / f"{uid}.json"


def write_mount(folder: Path, data: Mapping[str, bytes]) -> None:
    """Write a Secret as a kubelet does, changing all of its files at once; do nothing if they are the same.

    The files are links into `..data`, itself a link to the folder of the newest: watchers wait for that one.
    """
    link = folder / "..data"
    if link.exists() and {each.name: each.read_bytes() for each in link.iterdir()} == data:
        return
    folder.mkdir(parents=True, exist_ok=True)
    before = link.resolve() if link.exists() else None
    now = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    for name, content in data.items():
        write_private(now / name, content)
    following = folder / "..data_tmp"
    following.unlink(missing_ok=True)
    following.symlink_to(now.name)
    following.replace(link)
    for each in folder.iterdir():
        if not each.name.startswith("..") and each.name not in data:
            each.unlink()
    for name in data:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data", name))
    if before is not None:
        shutil.rmtree(before)


def _container(operator: Operator, pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((each for each in pod["spec"]["containers"] if operator.image in each["image"]), None)


def _number(target: int | str, pod: Mapping[str, Any]) -> int | str:
    """Return the number of a port that may be named."""
    ports = [port for each in pod["spec"]["containers"] for port in each.get("ports") or ()]
    return next((port["containerPort"] for port in ports if port.get("name") == target), target)


def at_mounts(argument: str, mounts: Mapping[str, Path]) -> str:
    """Return an argument with the files that it names where they are mounted here."""
    for path, folder in mounts.items():
        argument = re.sub(rf"(?<==){re.escape(path)}(?=/|$)", str(folder), argument)
    return argument


def _variables(container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the container's variables: those with values, which may be empty, and the pod's name and namespace."""
    fields = {"metadata.name": pod["metadata"]["name"], "metadata.namespace": pod["metadata"]["namespace"]}
    variables = {}
    for variable in container.get("env") or []:
        path = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
        value = fields.get(path) if "valueFrom" in variable else variable.get("value", "")
        if value is not None:
            variables[variable["name"]] = value
    return variables
