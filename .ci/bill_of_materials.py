"""The software bill of materials of a release, as CycloneDX JSON: the packages in `requirements.lock`.

`python .ci/bill_of_materials.py dist/hpkit.cdx.json`. The same inputs give the same bytes: no clock, no random number.
"""

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from hpkit.scaffold.files import needed_packages

ROOT = Path(__file__).parents[1]
_PINNED = re.compile(
    r"^([A-Za-z0-9._-]+)==(\S+?)(?: ; (.+?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


def bill_of_materials(project: dict, lock: str) -> str:
    """Return the bill for `[project]` of a pyproject.toml that is tested with the packages of a lock file."""
    needed, local = (
        needed_packages(map(Requirement, asked), lock)
        for asked in (project["dependencies"], project["optional-dependencies"]["local"])
    )
    scopes = dict.fromkeys(local, ComponentScope.OPTIONAL) | dict.fromkeys(needed, ComponentScope.REQUIRED)
    whole = Component(
        name=project["name"],
        version=project["version"],
        type=ComponentType.APPLICATION,
        bom_ref=project["name"],
        purl=PackageURL("pypi", name=project["name"], version=project["version"]),
        licenses=[LicenseExpression(project["license"])],
    )
    parts = [_component(*match.groups(), scopes) for match in _PINNED.finditer(lock)]
    bom = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{whole.purl} {lock}"))
    bom.metadata.component = whole
    bom.register_dependency(whole, [part for part in parts if part.scope is not ComponentScope.EXCLUDED])
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    # The only value that differs from run to run.
    del document["metadata"]["timestamp"]
    return json.dumps(document, indent=1) + "\n"


def _component(
    name: str, version: str, marker: str | None, hashes: str, scopes: dict[NormalizedName, ComponentScope]
) -> Component:
    digests = re.findall(r"sha256:([0-9a-f]{64})", hashes)
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{name}=={version}",
        purl=PackageURL("pypi", name=canonicalize_name(name), version=version),
        scope=scopes.get(canonicalize_name(name), ComponentScope.EXCLUDED),
        # One for each file of this version on the index: the machine determines which of them is installed.
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(f"https://pypi.org/simple/{canonicalize_name(name)}/#sha256={digest}"),
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
            )
            for digest in digests
        ],
        properties=[Property(name="marker", value=marker)] if marker else [],
    )


def main() -> None:
    """Write the bill to the named file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = bill_of_materials(project, (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
