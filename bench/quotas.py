"""200 quotas on one cluster, 20% of all calls throttled: do all converge, and at what cost?"""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "policies", "whatif"))]

from hpkit_local.aws.testing import running_endpoint  # noqa: E402 - the path comes first
from tests.provider.harness import CREDENTIALS, FailedError, World, in_process, quota  # noqa: E402

QUOTAS = 200
THROTTLE = 0.2
LATENCY = 0.02  # Delay of every call in seconds.
CHANGE = 1.0  # Duration of every creation and update in seconds.
PARALLEL = 64


def main():
    os.environ.update(CREDENTIALS)
    with running_endpoint(latency_factor=0.0) as endpoint:
        world = World(endpoint)
        with in_process(**world.settings) as engine:
            arn = world.governed(engine, world.group(count=QUOTAS))
            endpoint.set_faults(
                {
                    "throttle": str(THROTTLE),
                    "latency": str(LATENCY),
                    "slow-create": f"{CHANGE}@quota",
                    "slow-update": f"{CHANGE}@quota",
                }
            )
            calls = engine.servicer.clients.api.calls
            title = f"{QUOTAS} quotas, {THROTTLE:.0%} of calls throttled, {LATENCY} s a call"
            print(f"{title}, {CHANGE} s a change, {PARALLEL} at once")
            quotas = {f"t{number}": quota(arn, f"t{number}", 1) for number in range(QUOTAS)}
            failed = measure("create", calls, engine, [up(engine, *entry) for entry in quotas.items()], CHANGE)
            failed += measure("refresh", calls, engine, [refresh(engine, name) for name in quotas], 0.0)
            changed = {name: {**inputs, "description": "changed"} for name, inputs in quotas.items()}
            failed += measure("update", calls, engine, [up(engine, *entry) for entry in changed.items()], CHANGE)
            endpoint.set_faults({"throttle": None})
            live = world.live_quotas(arn)
            converged = live == {f"q-{name}": 1 for name in quotas}
            print(f"converged: {'yes, all ' + str(len(live)) if converged else 'NO'}")
            return 0 if converged and not failed else 1


def up(engine, name, inputs):
    return lambda: engine.up("ComputeQuota", name, inputs, timeout=300)


def refresh(engine, name):
    return lambda: engine.refresh("ComputeQuota", name)


def measure(title, calls, engine, work, change):
    calls.clear()
    began = time.monotonic()
    results = engine.together(work, threads=PARALLEL)
    seconds = time.monotonic() - began
    errors = [result for result in results if isinstance(result, FailedError)]
    total = sum(calls.values())
    injected = total * LATENCY + len(work) * change
    print(
        f"{title:8} {total / len(work):5.2f} calls a quota (throttled ones counted; {dict(calls)}), {seconds:6.2f} s, "
        f"{seconds / injected:4.2f} × the sum of the injected latencies ({injected:.1f} s), {len(errors)} errors"
    )
    for error in errors[:3]:
        print("   ", error)
    return len(errors)


if __name__ == "__main__":
    raise SystemExit(main())
