"""How long the local cloud takes: first start (new certificates and CRDs), stop, and second start."""

import tempfile
import time
from pathlib import Path

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance


def _timed(label, call):
    before = time.monotonic()
    call()
    print(f"{label:<12}{time.monotonic() - before:6.1f} s")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        instance = Instance.named("bench", root=Path(folder))
        try:
            _timed("first start", lambda: control.start(instance, say=lambda _: None))
            _timed("stop", lambda: control.stop(instance))
            _timed("warm start", lambda: control.start(instance, say=lambda _: None))
        finally:
            control.stop(instance)


if __name__ == "__main__":
    main()
