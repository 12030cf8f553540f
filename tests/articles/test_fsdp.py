"""The training script of the hands-on samples: its image, its options, and its checkpoints with two workers on CPUs."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.running import HANGS, free_ports, get_tools

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
    # Nothing builds the image: its instructions are these three, and it installs what the next test runs.
    assert re.findall(r"^(?!#)\S+", image, re.MULTILINE) == ["FROM", "RUN", "COPY"]
    tested = (Path(__file__).parent / "fsdp" / "requirements.in").read_text(encoding="utf-8")
    pinned = re.compile(r"\S+==\S+")
    assert pinned.findall(tested) == pinned.findall(image)


@pytest.fixture
def etcd(tmp_path):
    """Run etcd with the arguments of the sample, and return its address."""
    _, deployment, _ = yaml.safe_load_all((EXAMPLES / "fsdp-john.yaml").read_text(encoding="utf-8"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    ports = free_ports(("client", "peer"))
    address, peer = (f"127.0.0.1:{ports[name]}" for name in ("client", "peer"))
    places = {"/var/lib/etcd": str(tmp_path / "etcd"), "http://0.0.0.0:2379": f"http://{address}"}
    arguments = [places.get(each, each) for each in container["args"]]
    # A pod has the default port for itself.
    arguments += ["--listen-peer-urls", f"http://{peer}", "--initial-advertise-peer-urls", f"http://{peer}"]
    arguments += ["--initial-cluster", f"default=http://{peer}"]
    (found,) = get_tools("etcd")
    with subprocess.Popen([found.path, *arguments], stderr=subprocess.DEVNULL) as process:
        yield address
        process.terminate()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_two_workers_meet_at_etcd_train_and_resume_from_their_last_checkpoint(tmp_path, etcd):
    if not TORCHRUN.exists():
        pytest.skip("torch isn't installed: `make torch`")
    folder = tmp_path / "checkpoints"
    given = {**SMALL, "checkpoint_dir": folder, "resume_from_checkpoint": folder, "sharding_strategy": "full"}

    def steps(most):
        options = [f"--{name}={value}" for name, value in {**given, "max_steps": most}.items()]
        start = (TORCHRUN, "--nproc_per_node=1", "--nnodes=2", SCRIPT)
        # As the training operator sets them for a job with `elasticPolicy`.
        meeting = {"PET_RDZV_BACKEND": "etcd", "PET_RDZV_ENDPOINT": etcd, "PET_RDZV_ID": f"fsdp-{most}"}
        environment = {**os.environ, **meeting, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        workers = [
            subprocess.Popen(
                [*start, *options], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        said = [worker.communicate(timeout=HANGS) for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], said
        lines = [line for output, _ in said for line in output.splitlines()]
        return [line.split(" loss")[0] for line in lines if line.startswith("step ")]

    assert steps(3) == ["step 1", "step 2", "step 3"]
    assert {each.name for each in folder.iterdir()} == {"step-2", "step-3"}
    # It was killed while it wrote the last checkpoint.
    (folder / "step-3" / ".metadata").unlink()
    assert steps(4) == ["step 3", "step 4"]
