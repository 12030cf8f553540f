"""`python -m hpkit_local.kubernetes.kueue_run`: Kueue, restarted when its settings in the cluster change.

The settings are those of the task governance add-on, in ConfigMap kueue-manager-config. They take effect here without
`kubectl rollout restart`, except for those that belong to the local cloud (addresses, certificates). This process also
runs Kubeflow's training operator when a chart installs it.
"""

import argparse
import base64
import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from hpkit.signals import Signals
from hpkit_local.kubernetes.api import Api, apply_crds, documents
from hpkit_local.kubernetes.control_plane import UNREACHABLE
from hpkit_local.kubernetes.kueue import NAMESPACE, OUTSIDE, OWN_GATES, SECRET, SERVICE
from hpkit_local.kubernetes.pki import Pair, authority, signed
from hpkit_local.kubernetes.training_operator import TrainingOperator
from hpkit_local.processes import Identity, end, http_status, identify, spawn, write_private

__all__ = ["CONFIG_KEY", "CONFIG_MAP", "POD_LABELS", "digest", "main", "merged", "running"]

_HOOKS = "/apis/admissionregistration.k8s.io/v1"
# Kueue's webhooks for foreign kinds skip the cluster's own namespaces; those for its own kinds don't. Source: its
# config/components/webhook/kustomization.yaml.
_OWN_KINDS = {"workload", "clusterqueue", "cohort", "localqueue", "resourceflavor"}


def apply_objects(api: Api, manifests: Path, folder: Path, *, port: int) -> None:
    """Write certificates into a folder, and apply kinds and webhooks.

    Raises OSError while the API server is unavailable.

    manifests: the folder with its CRDs and webhooks; port: the webhooks' port on loopback.
    """
    ca, pair = _certificates(folder)
    bundle = base64.b64encode(ca.certificate.read_bytes()).decode()
    base = f"https://127.0.0.1:{port}"
    apply_crds(api, manifests, convert_url=f"{base}/convert", bundle=bundle)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    api.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace)
    api.apply(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}", _secret(ca, pair))
    for hooks in documents(manifests / "manifests.yaml"):
        plural = f"{hooks['kind'].lower()}s"
        hooks["metadata"] = {"name": f"kueue-{hooks['metadata']['name']}"}
        hooks["webhooks"] = [_by_address(hook, base, bundle) for hook in hooks["webhooks"]]
        api.apply(f"{_HOOKS}/{plural}/{hooks['metadata']['name']}", hooks)


def _certificates(folder: Path) -> tuple[Pair, Pair]:
    """Return authority and server pair; Kueue's rotator keeps them only if names and files are these."""
    ca = authority(folder, "kueue-ca", rsa=True)
    pair = signed(folder, "webhook", issuer=ca, names=(f"{SERVICE}.{NAMESPACE}.svc", "127.0.0.1"))
    served = folder / "served"
    served.mkdir(mode=0o700, exist_ok=True)
    for source, name in ((ca.certificate, "ca.crt"), (pair.certificate, "tls.crt"), (pair.key, "tls.key")):
        shutil.copy(source, served / name)
    return ca, pair


def _secret(ca: Pair, pair: Pair) -> dict[str, Any]:
    files = {"ca.crt": ca.certificate, "ca.key": ca.key, "tls.crt": pair.certificate, "tls.key": pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "data": {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()},
    }


def _by_address(hook: dict[str, Any], base: str, bundle: str) -> dict[str, Any]:
    path = hook["clientConfig"]["service"]["path"]
    own = str(hook["name"]).removesuffix(".kb.io")[1:] in _OWN_KINDS
    scope = {} if own else {"namespaceSelector": OUTSIDE}
    return {**hook, **scope, "clientConfig": {"url": f"{base}{path}", "caBundle": bundle}}


_FOLDER = "/api/v1/namespaces/kueue-system/configmaps"
_PODS = "/api/v1/namespaces/kueue-system/pods"
POD_LABELS = {"control-plane": "controller-manager", "app.kubernetes.io/name": "kueue"}
CONFIG_MAP = f"{_FOLDER}/kueue-manager-config"
CONFIG_KEY = "controller_manager_config.yaml"
# The settings with which Kueue runs are recorded in another ConfigMap, so that readers of the settings see no unrelated
# change.
_NOTE = "hpkit-local-kueue"
_NOTE_KEY = "running"
_OPEN = (
    *("fairSharing", "waitForPodsReady", "manageJobsWithoutQueueName", "resources", "admissionFairSharing"),
    *("integrations", "managedJobsNamespaceSelector"),
)
# While nothing changes, and while Kueue or the operator starts.
_IDLE_SECONDS = 0.5
_BUSY_SECONDS = 0.1
_END_SECONDS = 6.0
# Kueue ends its controllers immediately. For another second, it ends connections of the API server to its webhooks. A
# new Kueue takes those over.
_RESTART_SECONDS = 0.3


def main(argv: list[str] | None = None) -> int:
    """Run until SIGTERM, or until Kueue ends by itself."""
    arguments = _arguments(argv)
    signals = Signals(signal.SIGTERM)
    api = Api.of_kubeconfig(arguments.kubeconfig)
    runner = _Runner(arguments, api)
    operator = TrainingOperator(
        api, kubeconfig=arguments.kubeconfig, executable=arguments.training_operator, logs=arguments.log.parent
    )
    settled = ""
    try:
        while not _applied(api, arguments) and not signals.wait(_BUSY_SECONDS):
            pass
        threading.Thread(target=_watch, args=(api, signals), name="watch", daemon=True).start()
        while not signals.arrived:
            code = runner.ended()
            if code is not None:
                return code
            pause = _BUSY_SECONDS
            try:
                revision = api.revision()
                if revision != settled or operator.died():
                    settled = ""
                    if runner.poll() and operator.poll():
                        settled = revision
                if settled:
                    pause = _IDLE_SECONDS
            except OSError as error:
                # The API server is unavailable: try again.
                print(f"kueue_run: {error}", file=sys.stderr)
                pause = _IDLE_SECONDS
            signals.wait(pause)
    finally:
        operator.end()
        runner.end()
        api.close()
    return 0


def _watch(api: Api, signals: Signals) -> None:
    """Watch for changes of settings."""
    while True:
        time.sleep(_IDLE_SECONDS)
        with suppress(OSError):
            for _ in api.changes(_FOLDER):
                signals.wake()


def _applied(api: Api, arguments: argparse.Namespace) -> bool:
    """Apply Kueue's objects in the cluster; return whether it succeeded, or the API server doesn't serve yet."""
    try:
        apply_objects(api, arguments.manifests, arguments.config.parent, port=arguments.webhook_port)
    except OSError:
        return False
    return True


def merged(base: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return the configuration to run with; without a text in the cluster, the base as it is."""
    if text is None:
        return dict(base)
    try:
        settings = yaml.safe_load(text)
    except yaml.YAMLError:
        return dict(base)
    if not isinstance(settings, dict):
        return dict(base)
    own = {key: value for key, value in base.items() if key not in _OPEN}
    gates = {**base["featureGates"], **settings.get("featureGates", {}), **OWN_GATES}
    return {**own, **{key: settings[key] for key in _OPEN if key in settings}, "featureGates": gates}


def running(api: Api) -> str:
    """Return the digest of the text with which Kueue runs, empty if it runs with none."""
    return _data(api, f"{_FOLDER}/{_NOTE}").get(_NOTE_KEY, "")


def _data(api: Api, path: str) -> Mapping[str, str]:
    """Return the data of a ConfigMap, empty if it doesn't exist."""
    found: Mapping[str, str] = (api.find(path) or {}).get("data", {})
    return found


def _is_cut_off(api: Api) -> bool:
    """Return whether pods of Kueue are on nodes, and none of these nodes can be reached."""
    labels = ",".join(f"{key}={value}" for key, value in POD_LABELS.items())
    homes = {each["spec"].get("nodeName") for each in api.items(_PODS, labels=labels)} - {None}
    if not homes:
        return False
    nodes = {each["metadata"]["name"]: each for each in api.items("/api/v1/nodes")}
    return all(_is_unreachable(nodes[name]) for name in homes & nodes.keys()) and bool(homes & nodes.keys())


def _is_unreachable(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each.get("reason") == UNREACHABLE for each in conditions)


def digest(text: str) -> str:
    """Return the recorded form of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class _Runner:
    """Kueue's process and the configuration that it has."""

    def __init__(self, arguments: argparse.Namespace, api: Api) -> None:
        self._arguments = arguments
        self._api = api
        self._base: dict[str, Any] = json.loads(arguments.config.read_text(encoding="utf-8"))
        self._config: dict[str, Any] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._identity: Identity | None = None

    def ended(self) -> int | None:
        """Return Kueue's exit code if it has ended by itself."""
        return None if self._child is None or self._child.poll() is None else self._child.returncode or 1

    def poll(self) -> bool:
        """Start or restart Kueue if its settings require it; return whether it runs with them, as recorded."""
        if _is_cut_off(self._api):
            self._stand_still()
            return True
        text = _data(self._api, CONFIG_MAP).get(CONFIG_KEY)
        config = merged(self._base, text)
        noted = running(self._api)
        if config != self._config:
            if noted:
                self._note("")
            self.end(seconds=_RESTART_SECONDS)
            self._start(config)
            return False
        if text is not None and noted != digest(text):
            if self._is_ready():
                self._note(digest(text))
            return False
        return True

    def end(self, *, seconds: float = _END_SECONDS) -> None:
        """End Kueue, if it runs; kill it after so many seconds."""
        if self._child is not None and self._identity is not None:
            end([self._identity], seconds=seconds)
            self._child.wait()
        self._child = self._identity = None

    def _start(self, config: dict[str, Any]) -> None:
        path = self._arguments.config.with_name("running.json")
        write_private(path, json.dumps(config).encode())
        command = [str(self._arguments.kueue), f"--config={path}"]
        self._child = spawn(command, log=self._arguments.log, environment=os.environ, folder=None, bound=True)
        self._identity = identify(self._child.pid)
        self._config = config

    def _stand_still(self) -> None:
        """End Kueue until a node that it is on can be reached: its finalizers stay, and its webhooks do not answer."""
        if self._child is not None:
            print("kueue_run: no node of Kueue's pods can be reached, so Kueue doesn't work", file=sys.stderr)
            self._note("")
            self.end()
            self._config = {}

    def _note(self, found: str) -> None:
        """Note with which text Kueue runs."""
        note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _NOTE}, "data": {_NOTE_KEY: found}}
        self._api.apply(f"{_FOLDER}/{_NOTE}", note)

    def _is_ready(self) -> bool:
        try:
            return http_status(self._arguments.health_port, "/readyz") == http.client.OK
        except ConnectionError:
            # It is still starting.
            return False


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hpkit_local.kubernetes.kueue_run", description=__doc__)
    for name in ("kueue", "config", "manifests", "log", "kubeconfig", "training-operator"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--webhook-port", type=int, required=True)
    parser.add_argument("--health-port", type=int, required=True)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
