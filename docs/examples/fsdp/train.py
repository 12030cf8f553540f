"""Train with FSDP and keep checkpoints: what fsdp-john.yaml and fsdp-smith.yaml run, with the options of the workshop.

The model has a Llama's layers, without positions, and learns random tokens: put your data into `batch`. Options about
model type and data have no effect. A job resumes only from a folder that its pods share. A PyTorchJob
can't mount one: to keep its checkpoints in S3, load and save as docs/examples/resume.py does.
"""

import argparse
import os
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional

NUMBERS = {"max_context_width": 4096, "num_key_value_heads": 32, "intermediate_size": 11008, "hidden_width": 4096}
NUMBERS |= {"num_layers": 32, "num_heads": 32, "checkpoint_freq": 5000, "max_steps": 5000, "validation_freq": 500}
NUMBERS |= {"train_batch_size": 1, "val_batch_size": 1, "offload_activation": 0}
VOCABULARY = 32000


class Block(nn.Module):
    """Attention with grouped heads, then a gated network."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.parts, self.size = (heads, groups, groups), width // heads
        self.before, self.after = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attend = nn.Linear(width, sum(self.parts) * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what goes into the next block."""
        heads = self.attend(self.before(x)).unflatten(-1, (-1, self.size)).transpose(1, 2).split(self.parts, dim=1)
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        gate, up = self.gate(self.after(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)


def model_of(args: argparse.Namespace) -> nn.Sequential:
    """Return blocks between an embedding and the scores of the next token."""
    width, shape = args.hidden_width, (args.num_heads, args.num_key_value_heads, args.intermediate_size)
    blocks = (Block(width, *shape) for _ in range(args.num_layers))
    return nn.Sequential(nn.Embedding(VOCABULARY, width), *blocks, nn.RMSNorm(width), nn.Linear(width, VOCABULARY))


def batch(args: argparse.Namespace, step: int, size: int, device: torch.device) -> torch.Tensor:
    """Return the tokens of a step on this rank."""
    chance = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    return torch.randint(VOCABULARY, (size, args.max_context_width), generator=chance).to(device)


def loss_of(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """Return how badly each token is foreseen."""
    return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())


def newest(folder: str | None) -> Path | None:
    """Return the last complete checkpoint: its metadata is written last."""
    found = (each.parent for each in Path(folder or "/nowhere").glob("step-*/.metadata"))
    return max(found, key=lambda each: int(each.name[5:]), default=None)


def main(args: argparse.Namespace) -> None:
    """Train on as many processes as torchrun has started."""
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    mixed = MixedPrecisionPolicy(param_dtype=torch.bfloat16 if on_gpu else None)
    with torch.device("meta"):  # no process ever has the whole model
        model = model_of(args)
    for each in (*model[1:-2], model):
        fully_shard(each, mp_policy=mixed, reshard_after_forward=args.sharding_strategy == "full")
    model.to_empty(device=device)
    for each in model.modules():
        if hasattr(each, "reset_parameters"):
            each.reset_parameters()
    optimizer, done = torch.optim.AdamW(model.parameters(), lr=3e-4), 0
    if path := newest(args.resume_from_checkpoint):
        weights, moments = get_state_dict(model, optimizer)
        dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=path)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        done = int(path.name[5:])
    for step in range(done + 1, args.max_steps + 1):
        with save_on_cpu(pin_memory=on_gpu) if args.offload_activation else nullcontext():
            loss = loss_of(model, batch(args, step, args.train_batch_size, device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        said = f"step {step} loss {loss.item():.4f}"
        if step % args.validation_freq == 0:
            with torch.no_grad():
                said += f" validation {loss_of(model, batch(args, 0, args.val_batch_size, device)).item():.4f}"
        if args.checkpoint_dir and (step % args.checkpoint_freq == 0 or step == args.max_steps):
            weights, moments = get_state_dict(model, optimizer)
            dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=f"{args.checkpoint_dir}/step-{step}")
        if dist.get_rank() == 0:
            print(said, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, default in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("model_type", "tokenizer", "dataset", "dataset_config_name", "checkpoint_dir"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--resume_from_checkpoint")
    parser.add_argument("--sharding_strategy", choices=("full", "grad"), default="full")
    main(parser.parse_args())
