"""A separate Pulumi project with the real engine: its program declares the contents of `spec.json`."""

import json
import os
import subprocess
import sys
from pathlib import Path

from hpkit_local.toolchain import tool_path
from tests.running import tools_required

__all__ = ["PulumiProject"]


class PulumiProject:
    """A project with its own state; the program reads `spec`."""

    def __init__(self, folder, program, **environment):
        with tools_required():
            tools = [tool_path(name).parent for name in ("pulumi", "pulumi-language-python")]
        self.folder, self.spec = folder, {}
        runtime = {"name": "python", "options": {"virtualenv": str(Path(sys.prefix))}}
        (folder / "Pulumi.yaml").write_text(json.dumps({"name": "hpkit", "runtime": runtime}))
        (folder / "__main__.py").write_text(program)
        (folder / "state").mkdir()
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, tools), str(Path(sys.prefix) / "bin"), os.environ["PATH"]]),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "local",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            **environment,
        }
        self.run("stack", "init", "dev")

    def run(self, *arguments, check=True):
        command = ["pulumi", *arguments, "--non-interactive"]
        result = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )
        _, _, reason = result.stdout.partition("Diagnostics:")
        assert not check or result.returncode == 0, (reason or result.stdout) + result.stderr
        return result

    def write(self):
        (self.folder / "spec.json").write_text(json.dumps(self.spec))

    def steps(self, *options):
        """Return the step of a preview by resource name, without unchanged resources."""
        self.write()
        steps = json.loads(self.run("preview", "--json", *options).stdout)["steps"]
        return {
            step["urn"].rpartition("::")[2]: step for step in steps if step["op"] not in ("same", "read", "refresh")
        }

    def preview(self, *options):
        """Return operation by resource name."""
        return {name: step["op"] for name, step in self.steps(*options).items()}

    def up(self, *options):
        self.write()
        return self.run("up", "--yes", "--skip-preview", *options)

    def resources(self):
        """Return the state's resources by name."""
        found = json.loads(self.run("stack", "export").stdout)["deployment"].get("resources", [])
        return {entry["urn"].rpartition("::")[2]: entry for entry in found}
