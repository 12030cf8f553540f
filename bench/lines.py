"""The number of lines: code, tests, generated text and packages, and a user's file, bench/minimal.yaml.

The file is read, checked and planned like any organization. If it has a finding, or lacks a cluster policy, two teams
or a NodePool, its lines don't count.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "policies", "whatif"))]

from generate.__main__ import FILES, resource_files  # noqa: E402 - the path comes first
from hpkit.project import load  # noqa: E402

FILE = Path(__file__).with_name("minimal.yaml")
CODE = ("infra", "local", "policies", "whatif", "generate", "bench")
# Other programs write these files, and people don't read them.
LOCKS = (".lock", ".sum", ".mod")


def main() -> int:
    written = set(tracked()) - {*FILES, *resource_files()}
    code = lines_of(path for path in written if path.endswith(".py") and path.startswith(CODE))
    tests = lines_of(path for path in tracked() if path.endswith(".py") and path.startswith("tests/"))
    recorded = [path for path in tracked() if path.startswith(("tests/program/urns/", "tests/program/asked.txt"))]
    generated = lines_of([*FILES, *resource_files(), *recorded])
    packages = [path for path in (ROOT / "infra" / "hpkit").iterdir() if (path / "__init__.py").is_file()]
    print(f"{code:,} lines of code, {tests:,} of tests, {generated:,} generated; {len(packages)} packages in hpkit")
    return minimal()


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.splitlines() if not path.endswith(LOCKS)]


def lines_of(paths) -> int:
    return sum(len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in set(paths))


def minimal() -> int:
    loaded = load(FILE)
    if loaded.findings or not loaded.plans:
        print(
            f"{FILE.name} has {len(loaded.findings)} findings", *(each.message for each in loaded.findings), sep="\n  "
        )
        return 1
    plan = loaded.plans["dev"]
    pools = plan.spec.autoscaling.node_pools if plan.spec.autoscaling else []
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line.strip() and not _comment(line)]
    print(f"{FILE.name}: {len(lines)} lines for a cluster policy, {len(plan.teams)} teams, and {len(pools)} NodePool")
    return 0 if plan.policy and len(plan.teams) == 2 and pools else 1


def _comment(line: str) -> bool:
    return line.lstrip().startswith("#")


if __name__ == "__main__":
    raise SystemExit(main())
