"""Reads Kueue's own configuration file, and edits it where necessary; everything else, with comments, stays.

Source of gang scheduling: Kueue 0.19.2, Configuration API v1beta1 and v1beta2. v1beta1 has `waitForPodsReady.enable`.
In v1beta2 the section alone enables it. Since 0.19, so does its absence, unless a feature gate disables it.
"""

from collections.abc import Mapping
from typing import Any, Final

from hpkit.catalog import TASK_GOVERNANCE, AddOn, addons, is_older, topology_gates
from hpkit.config.reading.edit import dumped, loaded, set_value
from hpkit.errors import InputError
from hpkit.kueue.model import WaitForPodsReady
from hpkit.kueue.organization import wait_for_pods_ready_of
from hpkit.plan.model import Plan
from hpkit.text.formatting import seconds_in

__all__ = [
    "JOB_RESOURCES",
    "configured",
    "gang_differences",
    "gang_of",
    "gates_of",
    "resources_of",
    "with_feature_gates",
    "with_gang_scheduling",
]

_KEY: Final = "waitForPodsReady"
_OFF_GATE: Final = "DisableWaitForPodsReady"
_WITH_GATE: Final = "0.19.0"
# What Kueue waits for if the section has no timeout.
_TIMEOUT_V1BETA1: Final = 300.0
_TIMEOUT_V1BETA2: Final = 1800.0


def configured(text: str, plan: Plan) -> str:
    """Return Kueue's configuration for a plan; the same text if nothing changes.

    Raises ValueError if it isn't a YAML map.
    """
    if plan.gang_scheduling is not None:
        text = with_gang_scheduling(text, wait_for_pods_ready_of(plan), _kueue_of(plan))
    return with_feature_gates(text, gates_of(plan))


def gates_of(plan: Plan) -> dict[str, bool]:
    """Return Kueue's feature gates for the plan's topology-aware scheduling; none if the plan doesn't manage it."""
    if not plan.manages_topology:
        return {}
    # This Kueue doesn't support topologies, and rejects unknown gates.
    if is_older(_addon_version(plan), _governance().minimum or ""):
        return {}
    return dict.fromkeys(topology_gates(_kueue_of(plan)), plan.topology_aware_scheduling)


def with_feature_gates(text: str, gates: Mapping[str, bool]) -> str:
    """Return Kueue's configuration with feature gates set and all else as it was, comments too.

    It is the same text again when they are set already. Raises ValueError when the text is not a YAML map.
    """
    config = _config(text)
    present = config.get("featureGates") or {}
    missing = [(name, is_on) for name, is_on in sorted(gates.items()) if present.get(name) is not is_on]
    for name, is_on in missing:
        set_value(config, ("featureGates", name), is_on, first=False)
    return dumped([config], text) if missing else text


def with_gang_scheduling(text: str, gang: WaitForPodsReady | None, kueue: str | None) -> str:
    """Return Kueue's configuration with gang scheduling as wanted, None for off, and all else as it was.

    kueue: the version of Kueue; None if unknown. Settings that mean the same in another form stay as they are.
    Raises ValueError when the text is not a YAML map.
    """
    config = _config(text)
    if _gang(config, kueue) == gang:
        return text
    is_v1beta1 = _is_v1beta1(config)
    has_gate = _OFF_GATE in (config.get("featureGates") or {})
    if gang is None and is_v1beta1:
        return _set(text, (_KEY, "enable"), False)
    if gang is None and (has_gate or _has_gate(kueue)):
        return _set(text, ("featureGates", _OFF_GATE), True)
    if gang is None:
        return _set(text, (_KEY,), None)
    if has_gate:
        text = _set(text, ("featureGates", _OFF_GATE), False)
    section = {"enable": True} if is_v1beta1 else {}
    return _set(text, (_KEY,), section | _section(gang))


def gang_of(text: str, plan: Plan) -> WaitForPodsReady | None:
    """Return the gang scheduling of Kueue's configuration; None for off. ValueError: not a YAML map."""
    return _gang(_config(text), _kueue_of(plan))


def gang_differences(text: str, plan: Plan) -> tuple[str, ...]:
    """Return how gang scheduling in Kueue's configuration differs from a plan that manages it, as sentences.

    An empty text, which the add-on hasn't written yet, doesn't differ.
    """
    if plan.gang_scheduling is None or not text:
        return ()
    live, planned = gang_of(text, plan), wait_for_pods_ready_of(plan)
    if live is None or planned is None:
        if live is planned:
            return ()
        there, file = ("off", "on") if live is None else ("on", "off")
        settings = "" if live is None else f" ({', '.join(f'{name} {value}' for name, value in _flat(live).items())})"
        return (f"gang scheduling is {there}{settings}, but {file} in the file",)
    live_values, planned_values = _flat(live), _flat(planned)
    return tuple(
        f"gang scheduling has {name} {live_values.get(name, 'unset')}, but {planned_values.get(name, 'unset')} in the "
        "file"
        for name in dict.fromkeys([*planned_values, *live_values])
        if live_values.get(name) != planned_values.get(name)
    )


def _flat(gang: WaitForPodsReady) -> dict[str, str]:
    section = _section(gang)
    settings = section | section.pop("requeuingStrategy")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}


def _section(gang: WaitForPodsReady) -> dict[str, Any]:
    limit = {} if gang.backoff_limit_count is None else {"backoffLimitCount": gang.backoff_limit_count}
    return {
        "timeout": _duration(gang.timeout),
        "recoveryTimeout": _duration(gang.recovery_timeout),
        "blockAdmission": gang.block_admission,
        "requeuingStrategy": {
            "timestamp": gang.timestamp,
            **limit,
            "backoffBaseSeconds": gang.backoff_base_seconds,
            "backoffMaxSeconds": gang.backoff_max_seconds,
        },
    }


def _gang(config: Mapping[str, Any], kueue: str | None) -> WaitForPodsReady | None:
    # Before the add-on has written its configuration, nothing is on.
    if not config or (config.get("featureGates") or {}).get(_OFF_GATE) is True:
        return None
    is_v1beta1 = _is_v1beta1(config)
    section = config.get(_KEY)
    if not isinstance(section, Mapping):
        if is_v1beta1 or not _has_gate(kueue):
            return None
        section = {}
    if is_v1beta1 and section.get("enable") is not True:
        return None
    timeout = seconds_in(str(section.get("timeout") or "0")) or (_TIMEOUT_V1BETA1 if is_v1beta1 else _TIMEOUT_V1BETA2)
    recovery = section.get("recoveryTimeout")
    block = section.get("blockAdmission")
    strategy = section.get("requeuingStrategy") or {}
    base, most = strategy.get("backoffBaseSeconds"), strategy.get("backoffMaxSeconds")
    return WaitForPodsReady(
        timeout,
        timeout if recovery is None else seconds_in(str(recovery)),
        block_admission=is_v1beta1 if block is None else block,
        timestamp=strategy.get("timestamp") or "Eviction",
        backoff_limit_count=strategy.get("backoffLimitCount"),
        backoff_base_seconds=60 if base is None else base,
        backoff_max_seconds=3600 if most is None else most,
    )


def _is_v1beta1(config: Mapping[str, Any]) -> bool:
    return str(config.get("apiVersion", "")).endswith("/v1beta1")


def _has_gate(kueue: str | None) -> bool:
    return kueue is not None and not is_older(kueue, _WITH_GATE)


def _duration(seconds: float) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{number:g}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number]
    return "".join(parts) or "0s"


def _governance() -> AddOn:
    return next(each for each in addons() if each.name == TASK_GOVERNANCE)


def _addon_version(plan: Plan) -> str:
    return next((each.version for each in plan.addons if each.name == TASK_GOVERNANCE), None) or ""


def _kueue_of(plan: Plan) -> str | None:
    return {each.version: each.kueue for each in _governance().versions}.get(_addon_version(plan))


def _config(text: str) -> dict[str, Any]:
    try:
        documents = loaded(text)
    except InputError as error:
        raise ValueError(f"Kueue's configuration is not YAML: {error}") from None
    config: Any = documents[0] if documents and documents[0] is not None else {}
    if not isinstance(config, dict):
        raise ValueError(f"Kueue's configuration is not a map: {config!r}")  # noqa: TRY004 - as any other text
    return config


def _set(text: str, path: tuple[str, ...], value: Any) -> str:
    config = _config(text)
    set_value(config, path, value, first=False)
    return dumped([config], text)


_KUBEFLOW: Final = "kubeflow.org/v1"
_INFERENCE: Final = "inference.sagemaker.aws.amazon.com/v1"
# Kind → its API version, and its resource in URLs and RBAC rules.
JOB_RESOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "Job": ("batch/v1", "jobs"),
    "PyTorchJob": (_KUBEFLOW, "pytorchjobs"),
    "TFJob": (_KUBEFLOW, "tfjobs"),
    "XGBoostJob": (_KUBEFLOW, "xgboostjobs"),
    "PaddleJob": (_KUBEFLOW, "paddlejobs"),
    "JAXJob": (_KUBEFLOW, "jaxjobs"),
    "MPIJob": ("kubeflow.org/v2beta1", "mpijobs"),
    "HyperPodPyTorchJob": ("sagemaker.amazonaws.com/v1", "hyperpodpytorchjobs"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "RayJob": ("ray.io/v1", "rayjobs"),
    "RayCluster": ("ray.io/v1", "rayclusters"),
    "RayService": ("ray.io/v1", "rayservices"),
    "Deployment": ("apps/v1", "deployments"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
    "InferenceEndpointConfig": (_INFERENCE, "inferenceendpointconfigs"),
    "JumpStartModel": (_INFERENCE, "jumpstartmodels"),
}


def resources_of(*groups: str) -> list[str]:
    """Return the resources of the job kinds in some API groups, by name."""
    return sorted(name for version, name in JOB_RESOURCES.values() if version.partition("/")[0] in groups)
