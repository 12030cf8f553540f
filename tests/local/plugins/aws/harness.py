"""A Pulumi project of its own that makes whatever resources a table names, with the fake plugin as its `aws` plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from hpkit_local.plugins.install import install
from hpkit_local.toolchain import tool_path

PROGRAM = '''
import importlib
import json
import re
from pathlib import Path

import pulumi

spec = json.loads(Path("spec.json").read_text())
known = json.loads(Path("known.json").read_text())  # outputs of resources that are not in the program
made = {}


def output(name, attribute):
    if name not in known:
        return getattr(made[name], attribute)
    first, *rest = attribute.split("_")
    return known[name][first + "".join(part.capitalize() for part in rest)]


def resolved(value):
    """`${name.attribute}` is an output of another resource, alone or inside a text."""
    if isinstance(value, dict):
        return {key: resolved(item) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item) for item in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    found = re.findall(r"\\$\\{(\\w+)\\.(\\w+)\\}|([^$]+)", value)
    parts = [output(name, attribute) if name else text for name, attribute, text in found]
    return parts[0] if len(parts) == 1 else pulumi.Output.concat(*parts)


for name, row in spec.items():
    module, _, cls = row["type"].rpartition(".")
    after = [made[other] for other in row.get("after", []) if other in made]
    make = getattr(importlib.import_module(f"pulumi_aws.{module}"), cls)
    made[name] = make(name, **resolved(row["inputs"]), opts=pulumi.ResourceOptions(depends_on=after))
'''


class Project:
    """A Pulumi project in a folder of its own, with its own state; `spec` is resource name → type, inputs, after."""

    def __init__(self, folder: Path, endpoint, *, program: str = PROGRAM) -> None:
        try:
            tools = [tool_path(name).parent for name in ("pulumi", "pulumi-language-python")]
        except ToolError as error:
            pytest.skip(str(error))
        self.folder, self.endpoint, self.spec = folder, endpoint, {}
        runtime = {"name": "python", "options": {"virtualenv": str(Path(sys.prefix))}}
        (folder / "Pulumi.yaml").write_text(json.dumps({"name": "hpkit", "runtime": runtime}))
        (folder / "__main__.py").write_text(textwrap.dedent(program))
        (folder / "state").mkdir()
        install(folder / "home")
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, tools), str(Path(sys.prefix) / "bin"), os.environ["PATH"]]),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "local",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PYTHONWARNINGS": "ignore",
            "AWS_ENDPOINT_URL": endpoint.url,
            "AWS_REGION": "us-west-2",
        }
        self.known({})
        self.run("stack", "init", "dev")

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["pulumi", *arguments, "--non-interactive"]
        result = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )
        # The engine interrupts a program that it gives up, which Python says with a traceback: no fault of the plugin.
        assert "fault of the plugin" not in result.stdout, result.stdout
        _, _, reason = result.stdout.partition("Diagnostics:")
        assert not check or result.returncode == 0, (reason or result.stdout) + result.stderr
        return result

    def known(self, outputs: dict[str, dict]) -> None:
        """Take these outputs for resources that the program does not make."""
        (self.folder / "known.json").write_text(json.dumps(outputs))

    def write(self) -> None:
        (self.folder / "spec.json").write_text(json.dumps(self.spec))

    def steps(self) -> dict[str, dict]:
        """Return the step of a preview by resource name, `same` and `read` left out."""
        self.write()
        steps = json.loads(self.run("preview", "--json").stdout)["steps"]
        return {step["urn"].rpartition("::")[2]: step for step in steps if step["op"] not in ("same", "read")}

    def preview(self) -> dict[str, str]:
        """Return operation by resource name."""
        return {name: step["op"] for name, step in self.steps().items()}

    def up(self) -> subprocess.CompletedProcess[str]:
        self.write()
        return self.run("up", "--yes", "--skip-preview")

    def resources(self) -> dict[str, dict]:
        """Return what the state knows, by resource name."""
        deployment = json.loads(self.run("stack", "export").stdout)["deployment"]
        found = deployment.get("resources", [])
        return {entry["urn"].rpartition("::")[2]: entry for entry in found}
