"""The files of a new project: from an example, hpkit's own workflows, and a few templates."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from hpkit.catalog import PLACEHOLDER_ACCOUNTS
from hpkit.config.schema.reference import schema_text

__all__ = [
    "EXAMPLES",
    "PIPELINES",
    "Choice",
    "accounts_of",
    "first_environment",
    "locked_installer",
    "locked_requirements",
    "project_files",
]

_LOCK = Path(__file__).parent / "requirements.lock"


def locked_requirements(extra: str) -> str:
    """Return the part of hpkit's own lock file that hpkit with an extra needs, on every platform and Python."""
    lock = _LOCK.read_text(encoding="utf-8")
    requirements = [
        requirement
        for requirement in map(Requirement, requires("hpkit") or [])
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    ]
    return _pins(lock, needed_packages(requirements, lock))


def locked_installer() -> str:
    """Return the part of hpkit's own lock file with uv, which installs the rest faster than pip."""
    return _pins(_LOCK.read_text(encoding="utf-8"), {canonicalize_name("uv")})


def _pins(lock: str, names: set[NormalizedName]) -> str:
    kept = (entry for name, entry in _entries(lock) if name in names)
    return "".join(re.sub(r"^ +#.*\n", "", entry, flags=re.MULTILINE) for entry in kept)


def needed_packages(requirements: Iterable[Requirement], lock: str) -> set[NormalizedName]:
    """Return the packages of a lock file that requirements lead to.

    The lock file lists which packages need each package. Metadata of installed packages isn't enough: packages for
    another platform or Python aren't installed here.
    """
    needed = {canonicalize_name(each.name) for each in requirements}
    pins = [(name, _needed_by(entry)) for name, entry in _entries(lock)]
    while more := {name for name, needed_by in pins if name not in needed and needed & needed_by}:
        needed |= more
    return needed


def _entries(lock: str) -> list[tuple[NormalizedName, str]]:
    """Return each pin with the package's name; a package can have several, each for other Pythons."""
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    return [(canonicalize_name(entry.partition("==")[0]), entry) for entry in entries if "==" in entry]


def _needed_by(entry: str) -> set[NormalizedName]:
    """Return the packages that an entry names after `# via`."""
    return {canonicalize_name(name) for name in re.findall(r"^ +#(?: via)? +([\w.-]+)$", entry, re.MULTILINE)}


_FOLDER: Final = Path(__file__).parent
_POLICIES: Final = "stacks/{}.policy.json"
# By name, since stacks/ of a fork also holds its own organizations.
EXAMPLES: Final = ("autoscale", "bestpractice", "enterprise", "handson", "startup", "topology")
PIPELINES: Final = ("github", "gitlab", "none")
_GITHUB: Final = ("pull-request.yml", "review-comment.yml", "deploy.yml", "drift.yml")
_INSTALL: Final = (
    "python -m venv .venv && .venv/bin/pip install --quiet --require-hashes -r installer.lock && "
    ".venv/bin/uv pip install --quiet --python .venv --require-hashes -r requirements.lock && "
    ".venv/bin/uv pip install --quiet --python .venv --no-deps -r requirements.txt"
)
# What differs between hpkit's repository and a project that installs the package.
_IN_WORKFLOWS: Final = (
    ("make install", _INSTALL),
    ("hashFiles('local/hpkit_local/toolchain/**')", "hashFiles('requirements.*')"),
    (
        '"infra/**", "policies/**", "requirements.lock", "Pulumi.yaml"',
        '"policies/**", "requirements.*", "**.py", "Pulumi.yaml"',
    ),
)
# The step of the drift workflow that compares hpkit's own catalog with EKS.
_OF_MAINTAINERS: Final = re.compile(r" +# New EKS versions are .*?\n(?= +- name: Compare\n)", re.DOTALL)
# In an example: the example's values that the organization replaces.
_RANGE: Final = "203.0.113.0/24"


@dataclass(frozen=True)
class Choice:
    """What the user chose.

    - name: the organization's.
    - example: one of EXAMPLES.
    - region, public_cidr: "" for those of the example.
    - accounts: of the example's environments, in its order; none for placeholders.
    - pipeline: one of PIPELINES.
    - owner: the team that reviews changes, as in CODEOWNERS.
    - environment: the one that the README deploys; "" for the example's.
    - version: of hpkit.
    """

    name: str
    example: str
    pipeline: str
    version: str
    region: str = ""
    accounts: tuple[str, ...] = ()
    public_cidr: str = ""
    owner: str = ""
    environment: str = ""


def project_files(choice: Choice) -> dict[str, str]:
    """Return each file of the project, by its path in the project's folder, and its text."""
    return dict(_files(choice))


def _files(choice: Choice) -> Iterator[tuple[str, str]]:
    environment = choice.environment or first_environment(_example(f"{choice.example}.yaml")) or "dev"
    words = {
        "name": choice.name,
        "version": choice.version,
        "owner": choice.owner or f"@{choice.name}/platform",
        "stack": f"{choice.name}-{environment}",
        "install": _INSTALL,
    }
    for template, path in (
        ("Pulumi.yaml", "Pulumi.yaml"),
        ("program.txt", "__main__.py"),
        ("requirements.txt", "requirements.txt"),
        ("gitignore", ".gitignore"),
        ("pre-commit.yaml", ".pre-commit-config.yaml"),
        ("README.md", "README.md"),
        ("PulumiPolicy.yaml", "policies/PulumiPolicy.yaml"),
        ("pack.txt", "policies/__main__.py"),
    ):
        yield path, _filled(template, words)
    note = f"# Written by hpkit init {choice.version}.\n"
    yield "requirements.lock", note + locked_requirements("local")
    yield "installer.lock", note + locked_installer()
    yield f"stacks/{choice.name}.yaml", _organization(choice)
    yield "stacks/schema.json", schema_text()
    if (_FOLDER / "examples" / f"{choice.example}.policy.json").is_file():
        yield _POLICIES.format(choice.name), _own(_example(f"{choice.example}.policy.json"), choice)
    if choice.pipeline == "github":
        yield ".github/CODEOWNERS", _filled("CODEOWNERS", words)
        for name in _GITHUB:
            text = (_FOLDER / "workflows" / name).read_text(encoding="utf-8")
            yield f".github/workflows/{name}", _installed(text, choice.version)
    if choice.pipeline == "gitlab":
        yield ".gitlab/CODEOWNERS", _filled("CODEOWNERS", words)
        yield ".gitlab-ci.yml", _filled("gitlab-ci.yml", words)


def _organization(choice: Choice) -> str:
    """Return the organization file: the example with the user's names, without what explains the example."""
    schema, _, rest = _example(f"{choice.example}.yaml").partition("\n")
    body = re.sub(r"\A(?:#.*\n)+", "", rest)
    note = f"# {choice.name}, created from the example {choice.example} by hpkit init {choice.version}."
    return f"{schema}\n{note}\n{_own(body, choice)}"


def _own(text: str, choice: Choice) -> str:
    """Return an example's text with its name, region, account and range replaced by the user's."""
    text = re.sub(rf"\b{choice.example}\b", choice.name, text)
    for old, new in (
        (_region(choice.example), choice.region),
        *zip(PLACEHOLDER_ACCOUNTS, choice.accounts, strict=False),
        (_RANGE, choice.public_cidr),
    ):
        text = text.replace(old, new) if new else text
    # The example's comment on a placeholder.
    stated = "|".join(choice.accounts) or "-"
    return re.sub(rf'(account: "(?:{stated})") +# placeholder; .*$', r"\1", text, flags=re.MULTILINE)


def _region(example: str) -> str:
    found = re.search(r"region: ([a-z0-9-]+)", _example(f"{example}.yaml"))
    return found[1] if found else ""


def accounts_of(example: str) -> int:
    """Return how many accounts an example's environments use."""
    return len(set(re.findall(r"account: \"(\d{12})\"", _example(f"{example}.yaml"))))


def first_environment(organization: str) -> str:
    """Return the name of the first environment in the text of an organization file, or ""."""
    found = re.search(r"^environments:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*[ \t]+([\w-]+):", organization, re.MULTILINE)
    return found[1] if found else ""


def _example(name: str) -> str:
    return (_FOLDER / "examples" / name).read_text(encoding="utf-8")


def _installed(workflow: str, version: str) -> str:
    for here, there in _IN_WORKFLOWS:
        workflow = workflow.replace(here, there)
    workflow = _OF_MAINTAINERS.sub("", workflow)
    return f"# Written by hpkit init {version}.\n{workflow}"


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = (_FOLDER / "templates" / template).read_text(encoding="utf-8")
    for name, word in words.items():
        text = text.replace(f"<{name}>", word)
    return text
