"""What the Pod Security level `baseline` rejects in a pod, as one table of the standard.

Sources: Kubernetes, "Pod Security Standards", baseline; k8s.io/pod-security-admission 0.36, policy, of which all
versions of EKS that hpkit supports have the same values, except for probes (1.34) and user namespaces (1.35).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.cluster.jobs.kinds import Path, PodTemplate
from hpkit.cluster.jobs.limits import Breach
from hpkit.plan.model import POD_SECURITY_LEVEL
from hpkit.plan.pods import mapping, mappings

__all__ = ["SHARED_MEMORY", "violations"]

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - compared with what a manifest names
_REJECTED: Final = f"which Pod Security rejects in a team's namespace (level {POD_SECURITY_LEVEL})"
_OF_THE_NODE: Final = {"hostNetwork": "network", "hostPID": "processes", "hostIPC": "memory"}
_CAPABILITIES: Final = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
    *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
_SYSCTLS: Final = (
    "kernel.shm_rmid_forced",
    *(f"net.ipv4.ip_{name}" for name in ("local_port_range", "local_reserved_ports", "unprivileged_port_start")),
    *(f"net.ipv4.tcp_{name}" for name in ("syncookies", "fin_timeout", "rmem", "wmem")),
    *(f"net.ipv4.tcp_keepalive_{name}" for name in ("time", "intvl", "probes")),
    "net.ipv4.ping_group_range",
)
_PROFILES: Final = ("RuntimeDefault", "Localhost")
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
Row = tuple[str, Callable[[Any], bool], str]
# For the securityContext of a pod and of a container: the field, whether a value is rejected, and the fix.
_OF_BOTH: Final[tuple[Row, ...]] = (
    ("windowsOptions.hostProcess", lambda value: value is True, "Remove it"),
    ("appArmorProfile.type", lambda value: value not in _PROFILES, f"Use {' or '.join(_PROFILES)}"),
    ("seccompProfile.type", lambda value: value not in _PROFILES, f"Use {' or '.join(_PROFILES)}"),
    (
        "seLinuxOptions.type",
        lambda value: value not in ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"),
        "Remove it",
    ),
    ("seLinuxOptions.user", bool, "Remove it"),
    ("seLinuxOptions.role", bool, "Remove it"),
)
_OF_CONTAINERS: Final[tuple[Row, ...]] = (
    *_OF_BOTH,
    (
        "privileged",
        lambda value: value is True,
        "Remove privileged; GPUs, EFA and huge pages are resources, and don't require it",
    ),
    ("procMount", lambda value: value != "Default", "Remove it"),
    (
        "capabilities.add",
        lambda value: not isinstance(value, list) or any(each not in _CAPABILITIES for each in value),
        "Remove capabilities that containers don't have by default; EFA needs none",
    ),
)
_HANDLERS: Final = tuple(
    (*place, handler, "host")
    for place in (
        *((name,) for name in ("livenessProbe", "readinessProbe", "startupProbe")),
        *(("lifecycle", name) for name in ("postStart", "preStop")),
    )
    for handler in ("httpGet", "tcpSocket")
)


def violations(pods: PodTemplate) -> Iterator[Breach]:
    """Yield everything that Pod Security rejects in a job's pods: the job is accepted, but none of its pods is."""
    spec, path = mapping(pods.template.get("spec")), (*pods.path, "spec")
    for number, volume in enumerate(mappings(spec.get("volumes"))):
        if volume.get("hostPath") is not None:
            yield _host_path(volume, (*path, "volumes", number))
    for key, setting in _OF_THE_NODE.items():
        if spec.get(key) is True:
            yield _breach(
                (*path, key), f"its pods use the node's {setting} ({key})", f"Remove {key}; EFA and NCCL don't need it"
            )
    context = mapping(spec.get("securityContext"))
    for number, sysctl in enumerate(mappings(context.get("sysctls"))):
        if sysctl.get("name") not in _SYSCTLS:
            yield _breach(
                (*path, "securityContext", "sysctls", number),
                f"its pods set the kernel parameter {sysctl.get('name')}",
                "Remove it",
            )
    yield from _rows(_OF_BOTH, context, (*path, "securityContext"), "its pods set")
    yield from _annotations(pods)
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for number, container in enumerate(mappings(spec.get(field))):
            yield from _of_container(container, (*path, field, number), isolated=spec.get("hostUsers") is False)


def _annotations(pods: PodTemplate) -> Iterator[Breach]:
    annotations = mapping(mapping(pods.template.get("metadata")).get("annotations"))
    for key, value in annotations.items():
        if str(key).startswith(_APPARMOR) and value and not str(value).startswith(("runtime/default", "localhost/")):
            yield _breach(
                (*pods.path, "metadata", "annotations", key), f"its pods have the AppArmor profile {value}", "Remove it"
            )


def _of_container(container: Mapping[Any, Any], path: Path, *, isolated: bool) -> Iterator[Breach]:
    who = f"its container {container.get('name')}"
    rows = [row for row in _OF_CONTAINERS if row[0] != "procMount" or not isolated]
    yield from _rows(rows, mapping(container.get("securityContext")), (*path, "securityContext"), f"{who} sets")
    for number, port in enumerate(mappings(container.get("ports"))):
        if port.get("hostPort"):
            yield _breach(
                (*path, "ports", number, "hostPort"),
                f"{who} uses the node's port {port['hostPort']}",
                "Remove hostPort; `kubectl port-forward` or a Service reaches containerPort",
            )
    for steps in _HANDLERS:
        if host := _value(container, steps):
            yield _breach(
                (*path, *steps), f"{who} probes the host {host}", "Remove host, so that the pod itself is probed"
            )


def _rows(rows: Sequence[Row], context: Mapping[Any, Any], path: Path, who: str) -> Iterator[Breach]:
    for name, rejects, fix in rows:
        steps = tuple(name.split("."))
        value = _value(context, steps)
        if value is not None and rejects(value):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            yield _breach((*path, *steps), f"{who} {name}: {str(shown).lower() if value is True else shown}", fix)


def _value(content: Mapping[Any, Any], steps: tuple[str, ...]) -> Any:
    value: Any = content
    for step in steps:
        value = mapping(value).get(step)
    return value


def _host_path(volume: Mapping[Any, Any], path: Path) -> Breach:
    where = mapping(volume["hostPath"]).get("path")
    shared = where == SHARED_MEMORY
    own = "{medium: Memory}" if shared else "{}"
    remark = "" if shared else ", which is deleted with the pod, or claim a volume of the team's"
    return Breach(
        (*path, "hostPath"),
        f"its volume {volume.get('name')} is {where} of the node (hostPath), {_REJECTED}",
        f"Use `emptyDir: {own}` instead{remark}",
        "pod-security",
        instead=("emptyDir", {"medium": "Memory"}) if shared else None,
    )


def _breach(path: Path, message: str, fix: str) -> Breach:
    return Breach(path, f"{message}, {_REJECTED}", fix, "pod-security")
