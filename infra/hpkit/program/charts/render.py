"""A chart rendered by helm, without a cluster."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hpkit.errors import ToolError

__all__ = ["rendered"]

_SECONDS: Final = 120


def rendered(package: Path, values: Mapping[str, Any], *, kubernetes: str, helm: Path | None = None) -> str:
    """Return the manifests of a chart for a Kubernetes version, as `helm template` prints them.

    helm: which one; by default that of PATH. Raises ToolError if it is missing or fails.
    """
    executable = str(helm) if helm is not None else shutil.which("helm")
    if executable is None:
        raise ToolError("helm isn't on PATH. Install it, or run `hpkit local doctor --fix`")
    command = [executable, "template", "hyperpod-dependencies", str(package), "--namespace", "kube-system"]
    try:
        done = subprocess.run(  # noqa: S603 - the tool that was asked for
            [*command, "--kube-version", kubernetes, "--values", "-"],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"helm template of {package.name}: {error}") from None
    if done.returncode:
        raise ToolError(f"helm template of {package.name}: {' '.join(done.stderr.split())}")
    return done.stdout
