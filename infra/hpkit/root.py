"""The folder of the project that a command runs in."""

from pathlib import Path

__all__ = ["project_root"]


def project_root() -> Path:
    """Return the folder with Pulumi.yaml, searched from here upward, or the current folder if no parent has one."""
    working_folder = Path.cwd()
    for folder in (working_folder, *working_folder.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    return working_folder
