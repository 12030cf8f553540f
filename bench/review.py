"""Time of `hpkit review` of one change as a process, by number of teams, in multiples of one side's recording.

A review records the program twice; the rest is its own time. For the few teams of most organizations, the limit is 1.5
seconds without a recording (--quick, or a change with the same plan on both sides), and four seconds with one.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from validate import measure, organization

STACK = "config:\n  hpkit:organization: bench\n  hpkit:environment: dev\n"


def main() -> None:
    hpkit = str(Path(sys.executable).parent / "hpkit")
    before = None
    for teams in (10, 100):
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root)
            (folder / "stacks").mkdir()
            (folder / "Pulumi.yaml").write_text("name: hpkit\nruntime: python\nmain: infra\n")
            (folder / "stacks" / "Pulumi.bench-dev.yaml").write_text(STACK)
            file = folder / "stacks" / "bench.yaml"
            file.write_text(organization(teams))
            for step in (["init", "--quiet"], ["add", "-A"], ["commit", "--quiet", "-m", "before"]):
                subprocess.run(
                    ["git", "-c", "user.name=b", "-c", "user.email=b@example.com", *step], cwd=folder, check=True
                )
            recording, _ = measure([hpkit, "plan", "--stack", "bench-dev"], cwd=folder)
            file.write_text(organization(teams).replace("count: 1}", "count: 2}", 1))
            seconds, memory = measure([hpkit, "review", "--base", "HEAD"], cwd=folder)
            growth = f", {seconds / before:.1f} times the line before" if before else ""
            quick, _ = measure([hpkit, "review", "--base", "HEAD", "--quick"], cwd=folder)
            print(
                f"{teams:5} teams: {seconds:.2f} s = {seconds / recording:.1f} recordings, {memory} MiB{growth}; "
                f"--quick {quick:.2f} s = {quick / seconds:.2f} of it"
            )
            before = seconds


if __name__ == "__main__":
    main()
