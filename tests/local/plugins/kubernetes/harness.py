"""The fake Kubernetes plugin as the engine calls it, and the API server."""

import json
import threading
import time
from contextlib import contextmanager, suppress

from hpkit_local.kubernetes.api import RejectedError
from hpkit_local.plugins.kubernetes.server import KubernetesServicer
from hpkit_provider.engine.values import from_struct
from tests.plugin import FailedError, Plugin, served
from tests.running import HANGS

__all__ = [
    "CHART",
    "CONFIG_MAP",
    "CRD",
    "FailedError",
    "Plugin",
    "in_background",
    "in_process",
    "sample_chart",
    "when_possible",
]

CRD = {
    "metadata": {"name": "widgets.acme.example"},
    "spec": {
        "group": "acme.example",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}

CHART = {"apiVersion": "v2", "name": "sample", "version": "1.2.3", "appVersion": "4"}
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: made}
data: {colour: "{{ .Values.colour }}", size: "{{ .Values.size }}"}
"""
# It waits for the name of a node that doesn't exist, unless it must not wait.
_DEPLOYMENT = """
{{- if .Values.stuck }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec: {nodeSelector: {acme.example/zone: nowhere}, containers: [{name: main, image: none}]}
{{- end }}
"""
_HOOK = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: hooked
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: "{{ .Release.Revision }}"}
"""


class Kubernetes(Plugin):
    """The plugin's calls with plain Python values; a resource is (token, name). The plugin's log is in `logs`."""

    def __init__(self, stub, logs):
        super().__init__(stub, "kubernetes")
        self.logs = logs

    def check(self, token, name, inputs, *, old=None):
        answer = self.ask("Check", token, name, news=inputs, olds=old or {}, randomSeed=b"seed")
        if answer.failures:
            raise FailedError("; ".join(f"{each.property}: {each.reason}" for each in answer.failures))
        return from_struct(answer.inputs)

    def diff(self, token, name, old, new, *, outputs=None):
        answer = self.ask("Diff", token, name, old_inputs=old, olds=outputs or {}, news=new)
        return set(answer.detailedDiff), list(answer.replaces), answer.deleteBeforeReplace

    def create(self, token, name, inputs, *, preview=False, timeout=HANGS):
        """Check, then create; return ID, checked inputs and outputs."""
        checked = self.check(token, name, inputs)
        answer = self.ask("Create", token, name, properties=checked, preview=preview, timeout=timeout)
        return answer.id, checked, from_struct(answer.properties)

    def update(self, token, name, old, inputs, *, outputs, preview=False, timeout=HANGS):
        fields = {"olds": outputs, "old_inputs": old, "news": inputs, "preview": preview, "timeout": timeout}
        return from_struct(self.ask("Update", token, name, **fields).properties)

    def read(self, token, name, resource_id, *, inputs=None, outputs=None):
        answer = self.ask("Read", token, name, id=resource_id, inputs=inputs or {}, properties=outputs or {})
        return answer.id, from_struct(answer.inputs), from_struct(answer.properties)

    def delete(self, token, name, resource_id, outputs, *, timeout=HANGS):
        self.ask("Delete", token, name, id=resource_id, properties=outputs, timeout=timeout)


@contextmanager
def in_process(**settings):
    """The plugin in this process, behind real gRPC; its messages to the engine are in `logs`."""
    servicer, logs = KubernetesServicer(), []
    servicer.log = lambda *told: logs.append(told[:2])
    with served(servicer) as stub:
        yield Kubernetes(stub, logs).configure(**settings)


def sample_chart(parent):
    """Write a chart: a ConfigMap, a hook, and a Deployment that never becomes ready if `stuck` is set."""
    folder = parent / "sample"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(json.dumps(CHART))
    (folder / "values.yaml").write_text("colour: red\nsize: small\nstuck: false\n")
    for name, text in (("made", CONFIG_MAP), ("stuck", _DEPLOYMENT), ("hooked", _HOOK)):
        (folder / "templates" / f"{name}.yaml").write_text(text)
    return folder


@contextmanager
def in_background(action):
    """Run a function in a thread during the block; its exception is raised at the end."""
    raised = []

    def run():
        try:
            action()
        except Exception as error:  # noqa: BLE001 - handed on below
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(HANGS)
    assert not thread.is_alive(), "it goes on"
    assert not raised, raised


def when_possible(action):
    """Retry a call until the API server accepts it."""
    deadline = time.monotonic() + HANGS
    while True:
        with suppress(RejectedError, AssertionError):
            return action()
        assert time.monotonic() < deadline, "never possible"
        time.sleep(0.1)
