"""The training script of the hands-on samples: its image, its options, and its checkpoints with two CPU processes."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.running import HANGS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SCRIPT = EXAMPLES / "fsdp" / "train.py"
TORCHRUN = ROOT / ".venv-torch" / "bin" / "torchrun"
# A model that trains in a moment.
SMALL = {"max_context_width": 16, "hidden_width": 32, "intermediate_size": 64, "num_layers": 2, "num_heads": 4}
SMALL |= {"num_key_value_heads": 2, "offload_activation": 1, "checkpoint_freq": 2, "validation_freq": 2}


def command(team):
    *_, job = yaml.safe_load_all((EXAMPLES / f"fsdp-{team}.yaml").read_text(encoding="utf-8"))
    (container,) = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    return container["command"]


@pytest.mark.parametrize("team", ["john", "smith"])
def test_the_image_has_what_the_sample_runs_and_the_script_has_its_options(team):
    torchrun, _, _, script, *options = command(team)
    image = (SCRIPT.parent / "Dockerfile").read_text(encoding="utf-8")
    assert f"COPY {SCRIPT.name} {script}" in image
    # Where pip in the image installs packages.
    assert (torchrun, "library/python:" in image) == ("/usr/local/bin/torchrun", True)
    names = {
        each.value for each in ast.walk(ast.parse(SCRIPT.read_text(encoding="utf-8"))) if isinstance(each, ast.Constant)
    }
    names = {each.removeprefix("--") for each in names if isinstance(each, str)}
    assert {each.partition("=")[0].removeprefix("--") for each in options} <= names
    tested = (Path(__file__).parent / "fsdp" / "requirements.in").read_text(encoding="utf-8")
    assert set(re.findall(r"^\S+==\S+$", tested, re.MULTILINE)) <= set(image.split())


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_two_processes_train_and_resume_from_their_last_checkpoint(tmp_path):
    if not TORCHRUN.exists():
        pytest.skip("torch isn't installed: `make torch`")
    folder = tmp_path / "checkpoints"
    given = {**SMALL, "checkpoint_dir": folder, "resume_from_checkpoint": folder, "sharding_strategy": "full"}

    def steps(most):
        options = [f"--{name}={value}" for name, value in {**given, "max_steps": most}.items()]
        start = (TORCHRUN, "--standalone", "--nproc_per_node=2", SCRIPT)
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*start, *options], env=environment, capture_output=True, text=True, timeout=HANGS, check=False
        )
        assert done.returncode == 0, done.stderr
        return [line.split(" loss")[0] for line in done.stdout.splitlines() if line.startswith("step ")]

    assert steps(3) == ["step 1", "step 2", "step 3"]
    assert {each.name for each in folder.iterdir()} == {"step-2", "step-3"}
    # It was killed while it wrote the last checkpoint.
    (folder / "step-3" / ".metadata").unlink()
    assert steps(4) == ["step 3", "step 4"]
