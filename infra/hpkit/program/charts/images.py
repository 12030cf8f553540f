"""The images of pods in manifests, and their names in a mirror registry."""

import base64
import re
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
            login = " ".join((tool, *_LOGIN[tool], host, "--username", "AWS", "--password-stdin"))
            lines.append(f"aws ecr get-login-password --region {registry['region']} | {login}")
    for image in images:
        host, _, name = image.target.partition("/")
        place = _ECR.match(host)
        if place is not None:
            options = f"--region {place['region']} --registry-id {place['account']}"
            repository = re.split("[:@]", name)[0]
            lines.append(
                f"aws ecr describe-repositories {options} --repository-names {repository} > /dev/null || "
                f"aws ecr create-repository --region {place['region']} --repository-name {repository}"
            )
        lines.append(" ".join(_copy(tool, image)))
    return lines


def mirror(images: Sequence[MirroredImage], tool: Tool, *, say: Callable[[str], None]) -> None:
    """Copy images, each with all its platforms, to repositories, which are created if they don't exist.

    Raises ToolError if AWS or the tool fails; completed copies stay, and the next run finds them.
    """
    for host in _hosts(images):
        registry = _ECR.match(host)
        if registry is not None:
            _run([tool, *_LOGIN[tool], host, "--username", "AWS", "--password-stdin"], _password(registry["region"]))
    for image in images:
        host, _, name = image.target.partition("/")
        place = _ECR.match(host)
        if place is not None:
            _make_repository(place["region"], place["account"], re.split("[:@]", name)[0])
        say(f"{image.source} → {image.target}")
        _run(_copy(tool, image))


def _hosts(images: Sequence[MirroredImage]) -> list[str]:
    return sorted({name.partition("/")[0] for each in images for name in (each.source, each.target)})


def _copy(tool: Tool, image: MirroredImage) -> list[str]:
    if tool == "crane":
        return ["crane", "copy", image.source, image.target]
    # Skopeo takes no tag together with a digest (containers/image, docker transport).
    source = re.sub(r":[^:@/]+@", "@", image.source)
    return ["skopeo", "copy", "--all", f"docker://{source}", f"docker://{image.target}"]


def _run(command: Sequence[str], secret: str = "") -> None:
    try:
        done = subprocess.run(command, input=secret, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise ToolError(f"{command[0]}: {error}") from None
    if done.returncode:
        raise ToolError(f"{' '.join(command[:4])}: {' '.join(done.stderr.split()) or done.returncode}")


def _client(region: str) -> Any:
    import boto3

    return boto3.client("ecr", region_name=region)


def _password(region: str) -> str:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        (data,) = _client(region).get_authorization_token()["authorizationData"]
    except (BotoCoreError, ClientError) as error:
        raise ToolError(f"no login for ECR in {region}: {error}") from None
    return base64.b64decode(data["authorizationToken"]).decode().partition(":")[2]


def _make_repository(region: str, account: str, name: str) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    client = _client(region)
    try:
        client.describe_repositories(registryId=account, repositoryNames=[name])
    except client.exceptions.RepositoryNotFoundException:
        try:
            client.create_repository(registryId=account, repositoryName=name)
        except (BotoCoreError, ClientError) as error:
            raise ToolError(f"the ECR repository {name} in {region} can't be created: {error}") from None
    except (BotoCoreError, ClientError) as error:
        raise ToolError(f"the repository {name} of ECR in {region}: {error}") from None
