"""What a Release states, as helm takes it: each input is a flag, a file, or refused by name.

Source: pulumi-kubernetes v4, provider/pkg/provider/helm_release.go. A create is `helm install`, an update
`helm upgrade`; an input that the official plugin hands to one of them alone goes to that one alone here.
"""

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from hpkit_local.plugins.kubernetes.documents import documents_of
from hpkit_local.plugins.kubernetes.helm import HelmRun
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["failures", "flags", "merged_values", "values_files", "waits", "with_values"]

_SECONDS: Final = 300  # the official plugin's default for releases
_ALWAYS: Final = {
    "atomic": "--atomic",
    "dependencyUpdate": "--dependency-update",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "renderSubchartNotes": "--render-subchart-notes",
    "takeOwnership": "--take-ownership",
}
_INSTALL: Final = {
    **_ALWAYS,
    "createNamespace": "--create-namespace",
    "disableWebhooks": "--no-hooks",
    "replace": "--replace",
    "skipCrds": "--skip-crds",
}
_UPGRADE: Final = {
    **_ALWAYS,
    "cleanupOnFail": "--cleanup-on-fail",
    "disableCRDHooks": "--no-hooks",
    "forceUpdate": "--force",
    "recreatePods": "--recreate-pods",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
}
_TEXTS: Final = {"description": "--description", "postrender": "--post-renderer"}
# Used elsewhere than as a flag of install and upgrade.
_OTHERS: Final = frozenset(
    {
        *("chart", "devel", "keyring", "lint", "maxHistory", "name", "namespace", "repositoryOpts", "skipAwait"),
        *("timeout", "valueYamlFiles", "values", "verify", "version", "waitForJobs"),
        # Without any effect in the official plugin either; the SDK always sends `compat`.
        *("allowNullValues", "compat", "resourceNames"),
    }
)
_KNOWN: Final = frozenset({*_INSTALL, *_UPGRADE, *_TEXTS, *_OTHERS})
_REFUSED: Final = {"manifest": "is not supported, nor by the official plugin: leave it out"}


def failures(inputs: Props) -> list[tuple[str, str]]:
    """Return property and reason of what cannot be taken."""
    found = [] if inputs.get("chart") else [("chart", "is required")]
    for key in inputs:
        if key in _REFUSED:
            found.append((key, _REFUSED[key]))
        elif key not in _KNOWN and not key.startswith("__"):
            near = difflib.get_close_matches(key, _KNOWN, n=1)
            found.append((key, "no such input of a Release" + (f"; did you mean {near[0]!r}?" if near else "")))
    for key in ("timeout", "maxHistory"):
        value = inputs.get(key)
        if value is not None and not is_unknown(value) and (not isinstance(value, int) or value < 0):
            found.append((key, f"is a whole number from 0 on, not {value!r}"))
    return found


def waits(inputs: Props) -> list[str]:
    """Return the flags of helm's waits; an uninstallation has these, too."""
    flags = [] if inputs.get("skipAwait") else ["--wait"]
    return [*flags, "--timeout", f"{_seconds(inputs)}s"]


def flags(inputs: Props, *, upgrade: bool) -> list[str]:
    """Return the flags of an installation or an upgrade, but for chart and values."""
    found = [flag for key, flag in (_UPGRADE if upgrade else _INSTALL).items() if inputs.get(key)]
    found += [each for key, flag in _TEXTS.items() if inputs.get(key) for each in (flag, str(inputs[key]))]
    if inputs.get("waitForJobs") and not inputs.get("skipAwait"):
        found.append("--wait-for-jobs")
    if upgrade:
        # The official plugin's default is to keep them all, the command's ten.
        found += ["--history-max", str(int(inputs.get("maxHistory") or 0))]
    return [*found, *waits(inputs)]


def values_files(inputs: Props, helm: HelmRun) -> list[str]:
    """Return arguments that name files of values, those of the program's own mapping last: they win."""
    texts = [*_assets(inputs), *([json.dumps(inputs["values"])] if inputs.get("values") else [])]
    files = [helm.write(f"values-{index}.yaml", text) for index, text in enumerate(texts)]
    return [argument for file in files for argument in ("--values", file)]


def merged_values(inputs: Props) -> Props:
    """Return the values of all files and of the program, as helm keeps them with a release."""
    merged: Props = {}
    for text in _assets(inputs):
        try:
            documents = documents_of(text)
        except yaml.YAMLError as error:
            raise PluginError(f"valueYamlFiles: not readable as YAML: {error}") from None
        for document in documents[:1]:
            merged = with_values(merged, document or {})
    return with_values(merged, inputs.get("values") or {})


def with_values(below: Mapping[str, Any], above: Mapping[str, Any]) -> Props:
    """Return values with others laid over them, mapping by mapping, as helm does."""
    result = dict(below)
    for key, value in above.items():
        former = result.get(key)
        nested = isinstance(former, dict) and isinstance(value, dict)
        result[key] = with_values(dict(former or {}), value) if nested else value
    return result


def _seconds(inputs: Props) -> int:
    """Return the time that helm gives each of its waits."""
    return int(inputs.get("timeout") or _SECONDS)


def _assets(inputs: Props) -> Iterator[str]:
    for asset in inputs.get("valueYamlFiles") or []:
        path = asset.get("path")
        if path:
            try:
                yield Path(path).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise PluginError(f"valueYamlFiles: {path} is not readable: {error}") from None
        elif asset.get("uri"):
            raise PluginError(f"valueYamlFiles: {asset['uri']}: the local cloud takes files and texts, not addresses")
        else:
            yield str(asset.get("text", ""))
