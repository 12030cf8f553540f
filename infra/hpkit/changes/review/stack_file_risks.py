"""Risks in a stack's own file, which Pulumi writes: removed keys and changed values, without the values."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hpkit.changes.plan_diff import Change
from hpkit.changes.review.model import Risk
from hpkit.text.formatting import listing

__all__ = ["StackSettings", "stack_file_risks"]

# Key of the stack file → value, including the keys of its `config`.
StackSettings = Mapping[str, Any]
_SECRETS: Final = ("secretsprovider", "encryptedkey", "encryptionsalt")
_KEEP: Final = (
    "secrets in the state can only be read with the old value: "
    "use `pulumi stack change-secrets-provider` to change both"
)
_OTHERS: Final = "Pulumi's plugins run with different settings, such as different credentials"


def stack_file_risks(stack: str, settings: Change[StackSettings]) -> Iterator[Risk]:
    """Yield reductions and changes in a stack's file; None is a side without a file."""
    before, after = settings.before or {}, settings.after or {}
    changed = [key for key, value in before.items() if after.get(key) != value]
    if not changed:
        return
    texts = [f"{key} {'changes' if key in after else 'is removed'}" for key in changed]
    secret = any(key in _SECRETS for key in changed)
    means = [_KEEP] if secret else []
    means += [_OTHERS] if any(key not in _SECRETS for key in changed) else []
    said = f"stacks/Pulumi.{stack}.yaml: {listing(texts, 20)}: {'; '.join(means)}"
    yield Risk("stack-file", "attention", stack, said)
