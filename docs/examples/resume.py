"""Train in steps, save on SIGTERM, and resume: an example of train.py for `hpkit job new --checkpoint`.

CHECKPOINTS is a folder, or s3://BUCKET/PREFIX (requires boto3). Replace `state` and `train` with your model. Ranks are
independent here. If yours exchange gradients, they must agree on the step: all-reduce `stopping` before you save.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

STEPS, SECONDS = int(os.environ.get("STEPS", "10")), float(os.environ.get("SECONDS_PER_STEP", "60"))
# Set by Jobs and JobSets, and by the operator of PyTorchJobs.
NAME = f"rank-{os.environ.get('JOB_COMPLETION_INDEX') or os.environ.get('RANK') or 0}.json"


class Folder:
    """A checkpoint in a folder. It's replaced as a whole, so a killed process leaves the previous one."""

    def __init__(self, path: str) -> None:
        self.file = Path(path, NAME)

    def load(self) -> str | None:
        """Return the last checkpoint, None before the first."""
        return self.file.read_text() if self.file.exists() else None

    def save(self, text: str) -> None:
        """Write a checkpoint, and put it in the place of the last one."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        with new.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.file)


class Bucket:
    """A checkpoint in S3, which replaces an object as a whole."""

    def __init__(self, uri: str) -> None:
        import boto3

        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        self.s3, self.object = boto3.client("s3"), {"Bucket": bucket, "Key": f"{prefix}/{NAME}"}

    def load(self) -> str | None:
        """Return the last checkpoint, None before the first."""
        try:
            return self.s3.get_object(**self.object)["Body"].read().decode()
        except self.s3.exceptions.NoSuchKey:
            return None

    def save(self, text: str) -> None:
        """Replace the last checkpoint."""
        self.s3.put_object(**self.object, Body=text.encode())


def train(step: int) -> None:
    """Compute one step."""
    time.sleep(SECONDS)
    print(f"step {step}", flush=True)


stopping = False


def stop(*_: object) -> None:
    """Stop after the current step, because a checkpoint of half a step is useless."""
    global stopping  # noqa: PLW0603 - the script's only state that a signal changes
    stopping = True


# As process 1 of a container, Python ignores SIGTERM without a handler.
signal.signal(signal.SIGTERM, stop)
path = os.environ["CHECKPOINTS"]
checkpoint = Bucket(path) if path.startswith("s3://") else Folder(path)
state = json.loads(checkpoint.load() or '{"step": 0}')
while state["step"] < STEPS:
    train(state["step"] + 1)
    state["step"] += 1
    if stopping or state["step"] % 5 == 0 or state["step"] == STEPS:
        checkpoint.save(json.dumps(state))
    if stopping and state["step"] < STEPS:
        # Not 0: if the pod's node is drained, its Job would count the pod as complete.
        sys.exit(128 + signal.SIGTERM)
