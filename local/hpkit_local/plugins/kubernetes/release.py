"""Helm releases: installed, upgraded, read and uninstalled by helm; only recorded if the chart isn't available."""

import random
import secrets
import threading
from dataclasses import dataclass
from typing import Final

from hpkit.catalog import CHARTS_FOLDER
from hpkit_local.kubernetes.api import ApiResource
from hpkit_local.plugins.kubernetes.cluster import Cluster
from hpkit_local.plugins.kubernetes.helm import MIRROR, Answer, Helm, HelmRun, chart_of, flags, values_files, waits
from hpkit_local.plugins.kubernetes.live_release import (
    LACKING,
    RECORDED,
    LiveRelease,
    RecordedReleases,
    live_release,
    written_release,
)
from hpkit_local.plugins.kubernetes.objects import ref_of
from hpkit_local.plugins.kubernetes.ready import tests_of
from hpkit_local.plugins.kubernetes.substitute import install_substitute, may_substitute
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import InitFailedError, PluginError
from hpkit_provider.engine.values import UNKNOWN, Props, is_unknown

__all__ = ["FETCH_ELSEWHERE", "SECONDS", "TOKEN", "Release", "checked"]

TOKEN: Final = "kubernetes:helm.sh/v3:Release"  # noqa: S105 - a type's token
SECONDS: Final = 24 * 3600.0  # `timeout` bounds each of helm's waits; the official plugin bounds the whole in no way
_ASKING_SECONDS: Final = 30.0
_MOST: Final = 3
_NAMESPACE: Final = ApiResource("v1", "Namespace", "namespaces")
_SECRET: Final = ApiResource("v1", "Secret", "secrets", namespaced=True)
# How to install a chart that can't be downloaded here.
FETCH_ELSEWHERE: Final = (
    f"`hpkit catalog fetch-chart --to FOLDER` on a machine with a network, then set {MIRROR} to that folder"
)
_OUTPUTS: Final = ("status", "resourceNames")


def checked(inputs: Props, old: Props, *, name: str, namespace: str, seed: bytes) -> Props:
    """Return the inputs with a name and a namespace, as the official plugin gives them."""
    digits = random.Random(seed).getrandbits(32) if seed else secrets.randbits(32)  # noqa: S311 - the engine's seed
    made = {"name": old.get("name") or f"{name}-{digits:08x}", "namespace": old.get("namespace") or namespace}
    return {**made, **inputs}


@dataclass(frozen=True)
class Release:
    """The releases of an API server."""

    cluster: Cluster
    helm: Helm

    @property
    def _recorded(self) -> RecordedReleases:
        return RecordedReleases(self.cluster)

    def preview(self, inputs: Props) -> Props:
        """Return the outputs of a preview."""
        return {**inputs, **dict.fromkeys(_OUTPUTS, UNKNOWN)}

    def create(self, call: EngineCall, inputs: Props) -> tuple[str, Props]:
        """Install, or write down only; return id and outputs."""
        if any(is_unknown(inputs.get(key)) for key in ("name", "namespace", "chart")):
            raise PluginError("name, namespace and chart of a release must be known to create it")
        return _id(inputs), self._write(call, inputs, revision=1, upgrade=False)

    def may_come(self, call: EngineCall, inputs: Props, state: Props) -> bool:
        """Return whether a recorded release could be installed now: its chart, or what replaces it."""
        status = state.get("status") or {}
        if status.get("status") != RECORDED or self.helm.lacking():
            return False
        if status.get(LACKING) and may_substitute():
            return True
        if any(is_unknown(inputs.get(key)) for key in ("namespace", "chart")):
            return False
        try:
            with self.helm.run(call, str(inputs["namespace"])) as helm:
                return chart_of(call, helm, inputs).path is not None
        except PluginError:  # a preview doesn't fail or wait long for what doesn't exist yet
            return False

    def update(self, call: EngineCall, inputs: Props, state: Props) -> Props:
        """Upgrade, or record again; a recorded release is installed once its chart is available."""
        status = state.get("status") or {}
        revision = int(status.get("revision", 0)) + 1
        return self._write(call, inputs, revision=revision, upgrade=status.get("status") != RECORDED)

    def read(self, call: EngineCall, release_id: str, inputs: Props, state: Props) -> tuple[Props, Props] | None:
        """Return inputs and outputs from helm, or from the record; None if no such release exists."""
        namespace, _, name = release_id.rpartition("/")
        namespace = namespace or self.cluster.api.namespace
        recorded = self._recorded.read(call, namespace, name)
        if recorded is not None:
            return {key: value for key, value in recorded.items() if key not in _OUTPUTS}, recorded
        with self.helm.run(call, namespace) as helm:
            live = live_release(call, helm, namespace, name)
        if live is None or live.status == "uninstalled":
            return None
        seen = _seen(inputs, state, live)
        outputs = {**seen, **live.outputs}
        if inputs and live.status != "deployed":
            reason = f"release {namespace}/{name} is {live.status}: {live.description}"
            raise InitFailedError(reason, resource_id=release_id, state=outputs, inputs=seen)
        return seen, outputs

    def delete(self, call: EngineCall, release_id: str, state: Props) -> None:
        """Uninstall what was installed, forget what was recorded; its namespace and CRDs stay, as with helm."""
        namespace, _, name = release_id.rpartition("/")
        recorded = self._recorded.read(call, namespace, name)
        self._recorded.forget(call, namespace, name)
        if recorded is None:
            with self.helm.run(call, namespace) as helm:
                self._uninstall(call, helm, {**state, "name": name, "namespace": namespace})
        elif not self.helm.lacking():
            with self.helm.run(call, namespace) as helm:
                install_substitute(call, helm, recorded, wanted=False, wait=False)

    def _write(self, call: EngineCall, inputs: Props, *, revision: int, upgrade: bool) -> Props:
        missing, instead, lacking = self.helm.lacking(), "", False
        if not missing:
            with self.helm.run(call, str(inputs["namespace"])) as helm:
                chart = chart_of(call, helm, inputs)
                if not upgrade:
                    wanted, new = chart.path is None, revision == 1
                    instead, lacking = install_substitute(call, helm, inputs, wanted=wanted, new=new)
                if chart.path is not None:
                    outputs = self._install(call, helm, inputs, str(chart.path), upgrade=upgrade)
                    self._recorded.forget(call, str(inputs["namespace"]), str(inputs["name"]))
                    return outputs
                missing = chart.missing
        if upgrade:
            raise PluginError(f"release {_id(inputs)} can't be upgraded: {missing}. To fix: {FETCH_ELSEWHERE}.")
        if CHARTS_FOLDER in str(inputs["chart"]):
            missing = "it can't be downloaded"
        advice = "`hpkit local doctor --fix`" if self.helm.lacking() else FETCH_ELSEWHERE
        call.warn(f"the chart isn't installed, because {missing}. {instead}To install it: {advice}.")
        return self._recorded.write(call, inputs, revision=revision, lacking=lacking)

    def _install(self, call: EngineCall, helm: HelmRun, inputs: Props, chart: str, *, upgrade: bool) -> Props:
        """Install or upgrade; a release that isn't ready stays in state."""
        name, namespace = str(inputs["name"]), str(inputs["namespace"])
        values = values_files(inputs, helm)
        verb = self._verb(call, helm, inputs, upgrade=upgrade)
        arguments = flags(inputs, upgrade=verb == "upgrade")
        command = (verb, name, chart, "--namespace", namespace, "--output", "json", *values, *arguments)
        try:
            answer = helm.call(call, *command)
        except PluginError as error:  # the call has ended, and helm with it
            answer = Answer(code=1, output="", error=str(error), waited_for="")
        if answer.code == 0:
            call.progress("")
            return {**inputs, **written_release(answer.output).outputs}
        # A separate time limit, without cancellation: what exists must be in the state.
        asking = EngineCall(call.urn, _ASKING_SECONDS, threading.Event(), call.log)
        live = live_release(asking, helm, namespace, name)
        text = f"helm couldn't {verb} release {namespace}/{name}: {answer.error}"
        if live is None:
            raise PluginError(text)
        reasons = [text, *([answer.waited_for] if answer.waited_for else []), *self._unready(asking, live, namespace)]
        state = {**inputs, **live.outputs}
        raise InitFailedError("; ".join(reasons), resource_id=_id(inputs), state=state, inputs=inputs)

    def _verb(self, call: EngineCall, helm: HelmRun, inputs: Props, *, upgrade: bool) -> str:
        """Return helm's next command, after cleaning up after an interrupted run."""
        name, namespace = str(inputs["name"]), str(inputs["namespace"])
        live = live_release(call, helm, namespace, name) if self._is_recorded_by_helm(call, inputs) else None
        if live is not None and (live.cut_off or live.status == "uninstalling"):
            call.warn(f"release {_id(inputs)} is {live.status}, because a run was interrupted; it is installed again")
            self._uninstall(call, helm, inputs)
            self._until_namespaces_end(call, live)
            return "install"
        if live is not None and live.pending and upgrade:
            call.warn(f"release {_id(inputs)} is {live.status}, because a run was interrupted; it is rolled back first")
            answer = helm.call(call, "rollback", name, "--namespace", namespace, "--no-hooks")
            if answer.code:
                raise PluginError(f"helm couldn't roll back release {_id(inputs)}: {answer.error}")
        elif live is None and upgrade:
            raise PluginError(
                f"release {_id(inputs)} no longer exists. To fix: run `pulumi refresh`, then `pulumi up`, "
                "which installs it."
            )
        elif live is not None and not upgrade:
            raise PluginError(
                f"release {_id(inputs)} already exists ({live.status}, revision {live.chart['revision']}). What to "
                f"do: `pulumi import {TOKEN} NAME {_id(inputs)}`, choose another name, or `helm uninstall` it."
            )
        return "upgrade" if upgrade else "install"

    def _is_recorded_by_helm(self, call: EngineCall, inputs: Props) -> bool:
        """Return whether helm has Secrets of the release, which is known sooner than helm's own answer."""
        secrets = _SECRET.folder(str(inputs["namespace"]))
        labels = f"owner=helm,name={inputs['name']}"
        try:
            return bool(self.cluster.api.ask(call, "GET", secrets, labelSelector=labels, limit="1").get("items"))
        except PluginError:  # helm reports what is wrong with the name, or with the permissions
            return True

    def _until_namespaces_end(self, call: EngineCall, live: LiveRelease) -> None:
        """Wait for a release's namespaces that helm deleted: while they end, nothing can be created in them."""
        for live_object in live.objects:
            if live_object["kind"] == _NAMESPACE.kind:
                ref = ref_of(live_object, default_namespace="", namespaced=False)
                found = self.cluster.api.find(call, _NAMESPACE.path("", ref.name))
                if found is not None and found["metadata"].get("deletionTimestamp"):
                    self.cluster.until_gone(call, _NAMESPACE, ref, found["metadata"]["uid"])

    def _uninstall(self, call: EngineCall, helm: HelmRun, inputs: Props) -> None:
        name, namespace = str(inputs["name"]), str(inputs["namespace"])
        answer = helm.call(call, "uninstall", name, "--namespace", namespace, "--ignore-not-found", *waits(inputs))
        if answer.code:
            raise PluginError(f"helm couldn't uninstall release {namespace}/{name}: {answer.error}")

    def _unready(self, call: EngineCall, live: LiveRelease, namespace: str) -> list[str]:
        """Return what the first few objects of a release lack that aren't ready."""
        reasons = []
        for live_object in live.objects:
            kind = self.cluster.api.kind(call, str(live_object["apiVersion"]), str(live_object["kind"]))
            if kind is None or not tests_of(live_object):
                continue
            ref = ref_of(live_object, default_namespace=namespace, namespaced=kind.namespaced)
            found = self.cluster.api.find(call, kind.path(ref.namespace, ref.name))
            lacks = "is not there" if found is None else self.cluster.lacking(call, live_object, found)
            reasons += [f"{ref}: {lacks}"] if lacks else []
        return reasons[:_MOST]


def _seen(inputs: Props, state: Props, live: LiveRelease) -> Props:
    """Return the inputs with others' changes: by `helm upgrade`, or in another program."""
    if not inputs:
        found = {key: live.chart[key] for key in ("name", "namespace", "chart", "version")}
        return {**found, **({"values": live.values} if live.values else {})}
    seen, former = dict(inputs), state.get("status") or {}
    if (inputs.get("values") or {}) != live.values:
        seen["values"] = live.values
    for key in ("chart", "version"):
        if former.get(key) and former[key] != live.chart[key]:
            seen[key] = live.chart[key]
    return seen


def _id(inputs: Props) -> str:
    return f"{inputs['namespace']}/{inputs['name']}"
