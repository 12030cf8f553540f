"""A separate Pulumi project that creates the resources in a table, with the fake plugin as its `aws` plugin."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from hpkit_local.plugins.install import install
from tests.pulumi_project import PulumiProject

PROGRAM = '''
import importlib
import json
import re
from pathlib import Path

import hpkit.program.components.lazy  # so that it loads the modules of its resources alone
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


class Project(PulumiProject):
    """A project whose `spec` is resource name → type, inputs, `after`."""

    def __init__(self, folder: Path, endpoint) -> None:
        install(folder / "home")
        self.folder, self.endpoint = folder, endpoint
        self.known({})
        super().__init__(
            folder, PROGRAM, PYTHONWARNINGS="ignore", AWS_ENDPOINT_URL=endpoint.url, AWS_REGION="us-west-2"
        )

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        result = super().run(*arguments, check=check)
        # The engine interrupts the program on errors, and Python prints a traceback, which isn't the plugin's fault.
        assert "fault of the plugin" not in result.stdout, result.stdout
        return result

    def known(self, outputs: dict[str, dict]) -> None:
        """Use these outputs for resources that the program doesn't create."""
        (self.folder / "known.json").write_text(json.dumps(outputs))
