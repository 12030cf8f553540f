"""The template for `pulumi new`: the files of `hpkit init`, and the wheel.

`python .ci/pulumi_template.py dist/*.whl dist/hpkit-pulumi-template.zip`. The same inputs give the same bytes. Pulumi
fills in the project's name, and renames no file: the organization file has its own name.
"""

import sys
import zipfile
from pathlib import Path

from hpkit.scaffold import Choice, project_files

ORGANIZATION = "hyperpod"
_ABOUT = """template:
  displayName: SageMaker HyperPod on EKS
  description: Amazon SageMaker HyperPod on EKS, from one typed file per organization
  metadata:
    cloud: aws
"""
# The earliest date that a ZIP file supports.
_TIME = (1980, 1, 1, 0, 0, 0)


def template_files(version: str) -> dict[str, str]:
    """Return path → text of each file of the template."""
    files = project_files(Choice(ORGANIZATION, "startup", "github", version))
    head, _, rest = files["Pulumi.yaml"].partition(f"name: {ORGANIZATION}\n")
    return files | {"Pulumi.yaml": f"{head}name: ${{PROJECT}}\n{rest}{_ABOUT}"}


def write_template(wheel: Path, target: Path) -> None:
    """Write the template with its wheel as a ZIP file."""
    texts = template_files(wheel.name.split("-")[1])
    contents = {path: text.encode() for path, text in texts.items()} | {f"wheels/{wheel.name}": wheel.read_bytes()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(f"hpkit-pulumi-template/{path}", _TIME), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    write_template(Path(sys.argv[1]), Path(sys.argv[2]))
