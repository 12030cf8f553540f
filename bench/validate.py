"""Time and peak memory of `hpkit validate` as a whole process, by number of teams.

Each organization has 8 instance types, and every team has quota for each. Prints a line per size, and the cost of
importing the three libraries that it requires.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TYPES = [f"ml.g5.{size}xlarge" for size in (2, 4, 8, 12, 16, 24, 48)] + ["ml.p4d.24xlarge"]
ROLES = "arn:aws:iam::123456789012:role"
RUNS = 5


def organization(teams: int) -> str:
    lines = ["organization: bench", "clusterPolicy: {idleResourceSharing: Enabled}", "teams:"]
    lines += [
        f"  - {{name: team-{index}, fairShareWeight: {index % 100}, members: ['{ROLES}/team-{index}']}}"
        for index in range(teams)
    ]
    lines += [
        "environments:",
        "  dev:",
        '    account: "123456789012"',
        "    region: us-west-2",
        "    network:",
        "      existing:",
        "        vpcId: vpc-0a1b2c3d4e5f60718",
        "        subnets: {us-west-2a: subnet-0a1b2c3d4e5f60718, us-west-2b: subnet-0a1b2c3d4e5f60719}",
        "        securityGroupIds: [sg-0a1b2c3d4e5f60718]",
        '    eks: {version: "1.35"}',
        "    cluster:",
        "      name: bench",
        "      instanceGroups:",
    ]
    lines += [
        f"        - {{name: g{index}, instanceType: {name}, instanceCount: {teams}, availabilityZone: us-west-2a}}"
        for index, name in enumerate(TYPES)
    ]
    lines += ["    governance:", "      allocations:"]
    for index in range(teams):
        lines.append(f"        team-{index}:")
        lines += [f"          - {{instanceType: {name}, count: 1}}" for name in TYPES]
    return "\n".join(lines) + "\n"


def measure(command: list[str], *, cwd: Path | None = None) -> tuple[float, int]:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return statistics.median(times), peak


def main() -> None:
    python, hpkit = sys.executable, str(Path(sys.executable).parent / "hpkit")
    # Importing the name `pydantic` alone loads little; it loads the rest on demand.
    base, memory = measure([python, "-c", "from pydantic import BaseModel, Field; import yaml, click"])
    print(f"import pydantic, yaml, click: {base:.2f} s, {memory} MiB")
    before = None
    with tempfile.TemporaryDirectory() as folder:
        for teams in (10, 100, 1000):
            file = Path(folder) / f"{teams}.yaml"
            file.write_text(organization(teams))
            seconds, memory = measure([hpkit, "validate", str(file)])
            growth = f", {seconds / before:.1f} times the line before" if before else ""
            print(f"{teams:5} teams: {seconds:.2f} s = {seconds / base:.1f} imports, {memory} MiB{growth}")
            before = seconds


if __name__ == "__main__":
    main()
