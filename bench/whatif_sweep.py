"""A sweep: 64 policies over 10,000 tasks, on the available cores (the target is for two)."""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("infra", "whatif")]

from hpkit.project import load_stack  # noqa: E402 - the path comes first
from hpkit_whatif.scenario import open_scenario  # noqa: E402
from hpkit_whatif.simulate.vary import grid, sweep, variation  # noqa: E402

LIMIT_SECONDS = 180.0
TASKS = 10_000
VARIED = (
    "teams[vision].fairShareWeight=0,30,60,90",
    "teams[language].sharing.borrowLimit=50,100,200,300",
    "teams[speech].fairShareWeight=10,40,70,100",
)


def main(folder):
    month = (ROOT / "stacks" / "scenarios" / "month.yaml").read_text(encoding="utf-8")
    file = folder / "months.yaml"
    # The month is repeated until it has this many tasks.
    file.write_text(month.replace("last: 30d", "last: 150d").replace("until: 30d", "until: 150d"), encoding="utf-8")
    source = open_scenario(file)
    tasks = sum(1 for _ in source.tasks())
    policies = grid([variation(text) for text in VARIED])
    began = time.perf_counter()
    results = list(sweep(load_stack("enterprise-prod"), source, policies))
    seconds = time.perf_counter() - began
    fits = seconds < LIMIT_SECONDS and tasks >= TASKS and not any(result.refused for result in results)
    print(f"{len(results)} policies × {tasks} tasks on {os.cpu_count()} cores: {seconds:.1f} s")
    print(f"under {LIMIT_SECONDS:.0f} s: {'yes' if fits else 'NO'}")
    return 0 if fits else 1


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        raise SystemExit(main(Path(name)))
