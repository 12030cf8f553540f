"""`pulumi preview` of organizations with 10, 100 and 500 teams, compared with the engine alone.

For the engine alone, a program of a few lines registers the same resources, read from a file: same types, same plugins,
same inputs, but flat and constant, without decisions, checks or imports. It measures the time of the whole process and
peak memory, for program and engine separately; the best of several runs counts.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "policies", "whatif"))]

from bench.cloud import cloud, noise, registered_by, started  # noqa: E402 - the path comes first
from tests.program.cloud import Program, Repository  # noqa: E402

STACK = "bench-dev"
SAMPLE_SECONDS = 0.05
# The engine's placeholder for a value that is known only after the update.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
ALONE = f'''
import asyncio, json, pathlib, pulumi

def later(value):
    """Give the value as the engine gave it: what it did not know, it shall not know again."""
    if value == "{UNKNOWN}":
        future, unknown = asyncio.Future(), asyncio.Future()
        future.set_result(None)
        unknown.set_result(False)
        return pulumi.Output(set(), future, unknown)
    if isinstance(value, dict):
        return {{key: later(each) for key, each in value.items()}}
    return [later(each) for each in value] if isinstance(value, list) else value

providers = {{}}
for each in json.loads(pathlib.Path("resources.json").read_text()):
    kind, name = each["type"], each["name"]
    opts = pulumi.ResourceOptions(provider=providers.get(each["provider"]))
    if kind.startswith("pulumi:providers:"):
        providers[each["urn"]] = pulumi.ProviderResource(kind.rpartition(":")[2], name, later(each["inputs"]))
    elif each["custom"]:
        pulumi.CustomResource(kind, name, later(each["inputs"]), opts)
    else:
        pulumi.ComponentResource(kind, name)
'''


@dataclass(frozen=True)
class Figure:
    """A preview: seconds, and peak MiB of the program and of the engine."""

    seconds: float
    program: int
    engine: int


def organization(read, teams: int):
    """Return the hands-on organization with more teams: an instance each, one scientist each."""
    data = read("handson")
    data["organization"] = "bench"
    data["teams"] = [
        {
            "name": f"team-{index}",
            "fairShareWeight": index % 100,
            "sharing": {"strategy": "LendAndBorrow", "borrowLimit": 100},
            "members": [f"arn:aws:iam::123456789012:role/team-{index}"],
        }
        for index in range(teams)
    ]
    environment = data["environments"]["dev"]
    instance_type = "ml.g5.12xlarge"
    for group in environment["cluster"]["instanceGroups"]:
        if group["instanceType"] == instance_type:
            group["instanceCount"] = teams
    environment["governance"]["allocations"] = {
        f"team-{index}": [{"instanceType": instance_type, "count": 1}] for index in range(teams)
    }
    return data


def alone(folder: Path, resources) -> None:
    """Write the program that only registers these resources."""
    (folder / "stacks").mkdir(parents=True)
    (folder / ".venv").symlink_to(sys.prefix)
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))
    (folder / "Pulumi.yaml").write_text(json.dumps({**project, "main": "."}), encoding="utf-8")
    (folder / "stacks" / f"Pulumi.{STACK}.yaml").write_text("config: {}\n", encoding="utf-8")
    (folder / "__main__.py").write_text(ALONE, encoding="utf-8")
    (folder / "resources.json").write_text(json.dumps(resources), encoding="utf-8")


def preview(program: Program) -> Figure:
    """Run a preview, and record the memory of its processes."""
    peaks: dict[str, int] = {}
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as log:
        with started(program, "preview", log=log) as child:
            watcher = threading.Thread(target=_watch, args=(psutil.Process(child.pid), peaks))
            watcher.start()
            code = child.wait()
            seconds = time.monotonic() - began
        watcher.join()
        if code:
            log.seek(0)
            raise SystemExit(f"pulumi preview failed:\n{log.read()}")
    return Figure(seconds, peaks["program"], peaks["engine"])


def _watch(engine: psutil.Process, peaks: dict[str, int]) -> None:
    """Keep the highest values; the kernel's own peak of a process includes what happens between two samples."""
    while engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE:
        try:
            for process in [engine, *engine.children(recursive=True)]:
                role = "engine" if process == engine else "program"
                if role == "engine" or any("pulumi-language-python-exec" in word for word in process.cmdline()):
                    peaks[role] = max(peaks.get(role, 0), _peak(process.pid))
        except (psutil.NoSuchProcess, OSError):
            pass
        time.sleep(SAMPLE_SECONDS)


def _peak(pid: int) -> int:
    """Return the peak resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next((int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def best(program: Program, runs: int) -> Figure:
    previews = [preview(program) for _ in range(runs)]
    return Figure(
        min(each.seconds for each in previews),
        max(each.program for each in previews),
        max(each.engine for each in previews),
    )


def measure(instance, folder: Path, teams: int, runs: int) -> None:
    """Print one line: the program, the engine alone, and their ratio."""
    home = folder / f"program-{teams}"
    home.mkdir()
    repository = Repository(home)
    repository.write("bench", organization(repository.read, teams))
    settings = repository.folder / "stacks" / f"Pulumi.{STACK}.yaml"
    settings.write_text("config:\n  hpkit:organization: bench\n", encoding="utf-8")
    program = Program(instance, STACK, root=repository.folder)
    resources = registered_by(program)
    alone(folder / f"alone-{teams}", resources)
    engine = Program(instance, STACK, root=folder / f"alone-{teams}")
    same = len(registered_by(engine))
    if same != len(resources):
        raise SystemExit(f"the engine alone has {same} resources, the program {len(resources)}")
    whole, engine_only = best(program, runs), best(engine, runs)
    print(
        f"{teams:5} {len(resources):9} {whole.seconds:7.1f} s {engine_only.seconds:7.1f} s "
        f"{whole.seconds / engine_only.seconds:6.2f}"
        f"   {whole.program:5} MiB {whole.engine:5} MiB   {engine_only.program:5} MiB {engine_only.engine:5} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teams", nargs="*", type=int, default=[10, 100, 500])
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print(f"best of {arguments.runs} ({noise()})")
    print("teams resources   program     alone  ratio     program    engine       alone    engine")
    with cloud(0.0) as instance, tempfile.TemporaryDirectory() as folder:
        for teams in arguments.teams:
            measure(instance, Path(folder), teams, arguments.runs)


if __name__ == "__main__":
    main()
