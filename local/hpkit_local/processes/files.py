"""Files of an instance: written whole or not at all, readable by their owner only."""

import os
from pathlib import Path

__all__ = ["write_private"]


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step; mode 0600 from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    half.replace(path)
