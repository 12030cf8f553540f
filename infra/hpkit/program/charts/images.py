"""The images of pods in manifests, and their names in a mirror registry."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import yaml

from hpkit.errors import ToolError
from hpkit.plan.dependencies import is_regional, mirror_name, with_registry

__all__ = ["MirroredImage", "Tool", "copy_commands", "copying_tool", "images_in", "mirror", "mirrored"]

_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class MirroredImage:
    """An image, its source, and its name in the mirror; regional: nodes pull it from AWS in their region."""

    source: str
    needed_by: str
    target: str
    regional: bool


def images_in(manifests: str | Iterable[Any]) -> list[str]:
    """Return the images of every pod template in YAML text, or in documents, each once, with its registry, sorted."""
    documents = yaml.load_all(manifests, Loader=yaml.CSafeLoader) if isinstance(manifests, str) else manifests
    return sorted({with_registry(image) for document in documents for image in _found(document)})


def mirrored(sources: Mapping[str, str], *, registry: str, region: str) -> list[MirroredImage]:
    """Return image → its source as rows, sorted by name; registry is the mirror's."""
    return [
        MirroredImage(source, needed_by, mirror_name(source, registry), is_regional(source, region))
        for source, needed_by in sorted(sources.items())
    ]


def _found(value: Any) -> Iterator[str]:
    """Yield images of containers anywhere in a document; a schema's property of that name is a mapping, not a list."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in _CONTAINERS and isinstance(inner, (list, tuple)):
                yield from (each["image"] for each in inner if isinstance(each, Mapping) and "image" in each)
            else:
                yield from _found(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _found(inner)


# Sources: Amazon ECR user guide, "Private registry authentication"; awslabs/awsome-distributed-training, which copies
# the images of a closed network except regional ones (hyperpod-eks-tf/tools/copy-images-to-ecr.sh).
Tool = Literal["crane", "skopeo"]
_ECR: Final = re.compile(r"^(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_LOGIN: Final = {"crane": ("auth", "login"), "skopeo": ("login",)}


def copying_tool() -> Tool | None:
    """Return the tool of PATH that copies images, None for none."""
    if shutil.which("crane"):
        return "crane"
    return "skopeo" if shutil.which("skopeo") else None


def copy_commands(images: Sequence[MirroredImage], tool: Tool) -> list[str]:
    """Return the lines of a shell that copy images: logins, repositories, copies."""
    lines = []
    for host in _hosts(images):
        registry = _ECR.match(host)
        if registry is not None:
            login = shlex.join((tool, *_LOGIN[tool], host, "--username", "AWS", "--password-stdin"))
            lines.append(f"aws ecr get-login-password --region {registry['region']} | {login}")
    for image in images:
        host, _, name = image.target.partition("/")
        place = _ECR.match(host)
        if place is not None:
            options = f"--region {place['region']} --registry-id {place['account']}"
            repository = shlex.quote(re.split("[:@]", name)[0])
            lines.append(
                f"aws ecr describe-repositories {options} --repository-names {repository} > /dev/null || "
                f"aws ecr create-repository --region {place['region']} --repository-name {repository}"
            )
        lines.append(shlex.join(_copy(tool, image)))
    return lines


def mirror(images: Sequence[MirroredImage], tool: Tool, *, say: Callable[[str], None]) -> None:
    """Run those commands: each image is copied with all its platforms.

    Raises ToolError if the AWS CLI or the tool fails; completed copies stay, and the next run finds them.
    """
    for line in copy_commands(images, tool):
        say(line)
        done = subprocess.run(  # noqa: S603 - the names in it are quoted
            ["/bin/sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ToolError(f"{line}: {' '.join(done.stderr.split()) or done.returncode}")


def _hosts(images: Sequence[MirroredImage]) -> list[str]:
    return sorted({name.partition("/")[0] for each in images for name in (each.source, each.target)})


def _copy(tool: Tool, image: MirroredImage) -> list[str]:
    if tool == "crane":
        return ["crane", "copy", image.source, image.target]
    # Skopeo takes no tag together with a digest (containers/image, docker transport).
    source = re.sub(r":[^:@/]+@", "@", image.source)
    return ["skopeo", "copy", "--all", f"docker://{source}", f"docker://{image.target}"]
