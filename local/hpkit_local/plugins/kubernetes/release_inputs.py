"""A Release's inputs for helm: each input that the program uses is a flag or a file; others are rejected.

Source: pulumi-kubernetes v4, provider/pkg/provider/helm_release.go. A create is `helm install`, an update `helm
upgrade`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from hpkit_local.plugins.kubernetes.helm import HelmRun
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["failures", "flags", "values_files", "waits", "with_values"]

_SECONDS: Final = 300  # the official plugin's default for releases
_KNOWN: Final = frozenset(
    {
        *("chart", "createNamespace", "name", "namespace", "skipAwait", "timeout", "values", "version"),
        # Without any effect in the official plugin either; the SDK always sends `compat`.
        *("allowNullValues", "compat", "resourceNames"),
    }
)


def failures(inputs: Props) -> list[tuple[str, str]]:
    """Return property and reason of unsupported inputs."""
    problems = [] if inputs.get("chart") else [("chart", "is required")]
    unknown = [key for key in inputs if key not in _KNOWN and not key.startswith("__")]
    problems += [(key, "the local cloud's fake Kubernetes plugin has no such input of a Release") for key in unknown]
    seconds = inputs.get("timeout")
    if seconds is not None and not is_unknown(seconds) and (not isinstance(seconds, int) or seconds < 0):
        problems.append(("timeout", f"must be a whole number, 0 or more, not {seconds!r}"))
    return problems


def waits(inputs: Props) -> list[str]:
    """Return the flags of helm's waits; an uninstallation has these, too."""
    flags = [] if inputs.get("skipAwait") else ["--wait"]
    return [*flags, "--timeout", f"{int(inputs.get('timeout') or _SECONDS)}s"]


def flags(inputs: Props, *, upgrade: bool) -> list[str]:
    """Return the flags of an installation or an upgrade, without chart and values."""
    if upgrade:
        # The official plugin's default is to keep all revisions, the command's is ten.
        return ["--history-max", "0", *waits(inputs)]
    return [*(["--create-namespace"] if inputs.get("createNamespace") else []), *waits(inputs)]


def values_files(inputs: Props, helm: HelmRun) -> list[str]:
    """Return arguments that name the file of values, if there are any."""
    values = inputs.get("values")
    return ["--values", helm.write("values.yaml", json.dumps(values))] if values else []


def with_values(below: Mapping[str, Any], above: Mapping[str, Any]) -> Props:
    """Return values with others laid over them, mapping by mapping, as helm does."""
    result = dict(below)
    for key, value in above.items():
        former = result.get(key)
        nested = isinstance(former, dict) and isinstance(value, dict)
        result[key] = with_values(dict(former or {}), value) if nested else value
    return result
