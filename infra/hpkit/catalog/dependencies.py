"""The charts that hpkit installs, with their parts and images."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from hpkit.catalog.instances import read_data

__all__ = [
    "CHARTS_FOLDER",
    "Alternative",
    "ChartImage",
    "PinnedChart",
    "PublishedChart",
    "dependencies_chart",
    "keda_chart",
    "operator_charts",
]

# Folder of the project with packaged charts, from which the engine installs them.
CHARTS_FOLDER: Final = ".hpkit/charts"


class _Package:
    """The names of a chart's package."""

    __slots__ = ()
    name: str
    version: str
    package: str

    @property
    def file(self) -> str:
        """Return the name of its package in CHARTS_FOLDER: another pin has another name, so the engine sees it."""
        return f"{self.name}-{self.version}-{self.package[:12]}.tgz"

    @property
    def published_file(self) -> str:
        """Return the name that `helm package` gives it."""
        return f"{self.name}-{self.version}.tgz"


@dataclass(frozen=True, slots=True)
class PublishedChart(_Package):
    """A chart that is published as a package.

    package is the hash of its contents, as `chart_hash` returns it for the unpacked folder. It doesn't change when
    the same files are packed again. folder: where the chart is in an archive of a repository. namespace and
    values: of its release.
    """

    name: str
    version: str
    url: str
    package: str
    images: tuple[str, ...] = ()
    folder: str = ""
    namespace: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A part of the chart that EKS also offers as an add-on; the value at switch, off by default, installs it."""

    addon: str
    switch: str


@dataclass(frozen=True, slots=True)
class DevicePlugin:
    """A part of the chart that makes a resource of a kind of accelerators available to pods.

    omits: types of the kind for which its affinity has no node. affinity: path of the value that replaces the affinity;
    empty if the chart has no such value.
    """

    kind: str
    resource: str
    subchart: str
    omits: tuple[str, ...]
    affinity: str = ""

    @property
    def switch(self) -> str:
        """Return the value that turns the part off."""
        return f"{self.subchart}.devicePlugin.enabled"


@dataclass(frozen=True, slots=True)
class InjectedImage:
    """An image that an operator of the chart adds to pods, so that no manifest has it; by: which pods, and who."""

    image: str
    by: str
    switch: str


@dataclass(frozen=True, slots=True)
class ChartImage:
    """An image that the chart's pods run: image is its name and tag, registry its source.

    registries: region → registry, if it differs by region. subchart: the part with the image. repository, reference:
    path of the value that sets it without its tag, or with it; both empty if the chart has no such value. switch: the
    value that turns the part off. families: instance types, such as `trn1`, that require it; empty: any type.
    """

    image: str
    registry: str
    registries: Mapping[str, str]
    subchart: str
    repository: str
    reference: str
    switch: str
    families: tuple[str, ...]

    def source(self, region: str) -> str:
        """Return the registry that a region's nodes pull it from, unless the file names another one."""
        return f"{self.registries.get(region, self.registry)}/{self.image}"


@dataclass(frozen=True, slots=True)
class PinnedChart(_Package):
    """hpkit's pin: a folder of a Git repository at a commit, and the parts that are published elsewhere.

    - contents: the hash of that folder.
    - package: the hash of the packed chart with its parts.
    - replaced: files of the folder that packing omits. Packages of parts replace the folders of the same parts.
    - alternatives: parts that EKS also offers as add-ons (conditions of Chart.yaml; values.yaml turns them off).
    - values: top-level keys of its values that affect one of its parts (Chart.yaml: names and conditions).
    """

    name: str
    version: str
    repository: str
    commit: str
    path: str
    contents: str
    package: str
    replaced: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    subcharts: tuple[PublishedChart, ...]
    images: tuple[ChartImage, ...]
    injected: tuple[InjectedImage, ...]
    devices: tuple[DevicePlugin, ...]
    values: tuple[str, ...]

    @property
    def archive(self) -> str:
        """Return the address of the repository's files at the commit."""
        return f"{self.repository}/archive/{self.commit}.tar.gz"


@cache
def dependencies_chart() -> PinnedChart:
    """Return hpkit's pin of the dependencies chart."""
    data = read_data("dependencies.json")["chart"]
    return PinnedChart(
        **{key: data[key] for key in ("name", "version", "repository", "commit", "path", "contents", "package")},
        replaced=tuple(data["replaced"]),
        alternatives=tuple(Alternative(**each) for each in data["alternatives"]),
        subcharts=tuple(PublishedChart(**each) for each in data["subcharts"]),
        images=tuple(_image(each) for each in data["images"]),
        injected=tuple(InjectedImage(**each) for each in data["injected"]),
        devices=tuple(DevicePlugin(**{**each, "omits": tuple(each["omits"])}) for each in data["devices"]),
        values=tuple(data["values"]),
    )


@cache
def keda_chart() -> PublishedChart:
    """Return hpkit's pin of KEDA's chart, whose version is that of the operator in it."""
    return _published(read_data("dependencies.json")["keda"])


@cache
def operator_charts() -> tuple[PublishedChart, ...]:
    """Return hpkit's pins of the charts that `operators` in the file installs."""
    return tuple(_published(each) for each in read_data("dependencies.json")["operators"])


def _published(data: Mapping[str, Any]) -> PublishedChart:
    return PublishedChart(**{**data, "images": tuple(data["images"])})


def _image(row: Mapping[str, Any]) -> ChartImage:
    return ChartImage(
        image=row["image"],
        registry=row["registry"],
        registries=row.get("registries", {}),
        subchart=row["subchart"],
        repository=row.get("repository", ""),
        reference=row.get("reference", ""),
        switch=row["switch"],
        families=tuple(row.get("families", ())),
    )
