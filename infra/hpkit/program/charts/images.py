"""The images of pods in manifests, and their names in a mirror registry."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from hpkit.plan.dependencies import is_regional, mirror_name, with_registry

__all__ = ["MirroredImage", "images_in", "mirrored"]

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
