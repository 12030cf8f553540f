"""Time of `hpkit validate` and `hpkit review` of one change as processes: 50 organizations, 3 environments each.

Each environment has 10 teams with quota for 8 instance types. The limit is 3 seconds for validation, and 5 for a
review.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from validate import RUNS, measure, organization

ORGANIZATIONS = 50
ENVIRONMENTS = ("dev", "staging", "prod")


def write(folder: Path) -> Path:
    """Write a project; return the file of one organization."""
    (folder / "Pulumi.yaml").write_text("name: bench\nruntime: python\n")
    (folder / "stacks").mkdir()
    for number in range(ORGANIZATIONS):
        name = f"org{number}"
        text = organization(10).replace("organization: bench", f"organization: {name}")
        # Separate accounts, because a cluster's name is unique in one.
        text = text.replace("123456789012", f"{100000000000 + number}")
        shared, _, environment = text.partition("  dev:\n")
        file = folder / "stacks" / f"{name}.yaml"
        file.write_text(
            shared
            + "".join(
                f"  {each}:\n{environment.replace('name: bench', f'name: {name}-{each}')}" for each in ENVIRONMENTS
            )
        )
    return file


def main() -> None:
    hpkit = str(Path(sys.executable).parent / "hpkit")
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        file = write(folder)
        for step in (["init", "--quiet"], ["add", "-A"], ["commit", "--quiet", "-m", "before"]):
            subprocess.run(
                ["git", "-c", "user.name=b", "-c", "user.email=b@example.com", *step], cwd=folder, check=True
            )
        before = processor_time()
        for command in (["validate"], ["review", "--base", "HEAD"]):
            if command[0] == "review":
                file.write_text(file.read_text().replace("fairShareWeight: 1,", "fairShareWeight: 2,", 1))
            seconds, memory = measure([hpkit, *command], cwd=folder)
            spent, before = (processor_time() - before) / RUNS, processor_time()
            print(f"hpkit {command[0]}: {seconds:.2f} s, {spent:.2f} s of processor time, {memory} MiB")


def processor_time() -> float:
    """Return the processor seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
