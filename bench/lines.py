"""How many lines a user writes for a cluster policy, two teams and a NodePool: the whole of bench/minimal.yaml.

The file is read, checked and planned as any organization is; with a finding, or without all of the three, its lines
do not count.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "policies", "whatif"))]

from hpkit.project import load  # noqa: E402 - the path comes first

FILE = Path(__file__).with_name("minimal.yaml")
SECTIONS = ("clusterPolicy:", "teams:", "autoscaling:", "governance:")


def main() -> int:
    loaded = load(FILE)
    findings = loaded.findings
    if findings or not loaded.plans:
        print(f"{FILE.name} has {len(findings)} findings", *(each.message for each in findings), sep="\n  ")
        return 1
    plan = loaded.plans["dev"]
    pools = plan.spec.autoscaling.node_pools if plan.spec.autoscaling else []
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if line.strip() and not _comment(line)]
    print(f"{FILE.name}: policy {'yes' if plan.policy else 'no'}, {len(plan.teams)} teams, {len(pools)} NodePool")
    print(f"{len(lines)} lines, no findings; without network, EKS and cluster {sum(_governing(lines))}")
    return 0 if plan.policy and len(plan.teams) == 2 and pools else 1


def _comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _governing(lines: list[str]) -> list[bool]:
    """Say of each line whether it is in a section of policy, teams, quotas or NodePools."""
    found, depth = [], -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and indent <= depth:
            depth = -1
        if line.strip().startswith(SECTIONS):
            depth = indent
        found.append(depth >= 0)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
