"""Lists newer versions of everything that this repository pins, as a Markdown table.

`python .ci/outdated.py`. It asks each part's own registry, with pip, `go list`, `git ls-remote` and `helm show chart`,
and changes nothing. Parts whose registry doesn't answer are listed at the end.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from hpkit_local.toolchain import GO, TOOLS, get_all, tool_path
from hpkit_local.toolchain.model import GoBuild, GoFiles, PyPi, Tool

ROOT = Path(__file__).parents[1]
_SECONDS = 300
# Versions that follow another part, and what that part is. Keys are names in the first column.
FOLLOWS = {
    "github.com/pulumi/pulumi/sdk/v3": "the engine; 3.75.0 is the last version with the language host",
    "k8s.io/kubernetes": "Kueue's libraries",
    "sigs.k8s.io/kueue": "HyperPod task governance 1.6",
    "sigs.k8s.io/jobset": "Kueue's libraries",
    "github.com/ray-project/kuberay/ray-operator": "Kueue's libraries",
    "github.com/kedacore/keda/v2": "the chart of KEDA",
    "github.com/kubeflow/training-operator": "the dependencies chart",
    **dict.fromkeys(("aws-efa-k8s-device-plugin", "cert-manager", "nvidia-device-plugin"), "the dependencies chart"),
}


@dataclass(frozen=True)
class Part:
    """Something pinned: where, in which version, and how to find the newest."""

    name: str
    pinned: str
    where: str
    newest: Callable[[], str]


class UnansweredError(Exception):
    """A registry that doesn't answer, and why."""


def asked(*command: str, folder: Path = ROOT) -> str:
    """Return the output of a command. Raises UnansweredError if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - the commands of this file
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnansweredError(str(error)) from None
    if done.returncode:
        raise UnansweredError((done.stderr.strip().splitlines() or ["no output"])[-1].strip())
    return done.stdout


def newest_tag(listed: str, line: str = "") -> str:
    """Return the newest released version in the output of `git ls-remote --tags`, of a line such as 3.11 or of all."""
    tags = re.findall(r"refs/tags/v?(\d+\.\d+\.\d+)$", listed, re.MULTILINE)
    return str(max(map(Version, (tag for tag in tags if tag.startswith(line))), default=""))


def is_newer(newest: str, pinned: str) -> bool:
    """Return whether a version is newer than the pinned one; commits only differ."""
    try:
        return Version(newest) > Version(pinned)
    except InvalidVersion:
        return newest != pinned


def modules(tools: Iterable[Tool]) -> Iterator[tuple[str, str, str]]:
    """Yield module, version and go.mod of each tool that is built from a Go module, or copied from one."""
    for tool in tools:
        for source in tool.sources:
            if isinstance(source, GoBuild):
                yield required(source.recipe / "go.mod", source.package)
                for copy in source.copies:
                    yield required(copy.recipe / "go.mod", copy.module)
            elif isinstance(source, GoFiles):
                yield required(source.recipe / "go.mod", source.module)


def required(file: Path, package: str) -> tuple[str, str, str]:
    """Return the module of a package, its version and the go.mod that requires it."""
    pairs = re.findall(r"^(?:require)?\s+(\S+) v(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    module, version = max(
        (pair for pair in pairs if f"{package}/".startswith(f"{pair[0]}/")), key=lambda pair: len(pair[0])
    )
    return module, version, str(file.relative_to(ROOT))


def go_parts() -> Iterator[Part]:
    """Yield the Go modules: of the toolchain, and of the tools of the repository."""
    found = dict.fromkeys(modules(TOOLS))
    for file in (
        ROOT / ".vale/go.mod",
        ROOT / ".ci/actionlint/go.mod",
        ROOT / "tests/security/scanners/kube-score/go.mod",
    ):
        for package in re.findall(r"^tool (\S+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            found[required(file, package)] = None
    for module, version, where in found:
        yield Part(module, version, where, partial(newest_module, module))


def newest_module(module: str) -> str:
    """Return the newest version of a Go module; outside any module, so that no go.mod limits it."""
    with tempfile.TemporaryDirectory() as folder:
        return str(
            json.loads(asked("go", "list", "-m", "-json", f"{module}@latest", folder=Path(folder)))["Version"]
        ).removeprefix("v")


def workflows() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each workflow."""
    for file in sorted((ROOT / ".github/workflows").glob("*.yml")):
        yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")


def action_parts() -> Iterator[Part]:
    """Yield the actions of the workflows."""
    found = {}
    for where, text in workflows():
        for repository, version in re.findall(r"uses: ([\w.-]+/[\w.-]+)\S*@[0-9a-f]{40} # v(\S+)", text):
            found.setdefault((repository, version), where)
    for (repository, version), where in found.items():
        yield Part(repository, version, where, partial(newest_release, f"https://github.com/{repository}"))


def newest_release(url: str, line: str = "") -> str:
    """Return the newest version among the tags of a Git repository."""
    return newest_tag(asked("git", "ls-remote", "--tags", "--refs", url), line)


def head_of(url: str) -> str:
    """Return the newest commit of a Git repository."""
    return asked("git", "ls-remote", url, "HEAD").split()[0]


def python_parts() -> Iterator[Part]:
    """Yield the packages of the lock files, and those that the toolchain and workflows install.

    `requirements.lock` is what the environment has. Of the other locks, which are installed only for some tests, the
    requested packages are looked up: the others follow from them.
    """
    yield Part(
        "requirements.lock",
        "",
        "requirements.lock",
        lambda: asked(sys.executable, "-m", "pip", "list", "--outdated", "--format", "json"),
    )
    found: dict[tuple[str, str], str] = {}
    for file in sorted(ROOT.glob("tests/*/*/requirements.in")):
        lock = file.with_suffix(".lock")
        pinned = {
            canonicalize_name(name): version
            for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
        }
        for name in re.findall(r"^([\w.-]+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            found[name, pinned[canonicalize_name(name)]] = str(lock.relative_to(ROOT))
    for tool in (GO, *TOOLS):
        for source in tool.sources:
            if isinstance(source, PyPi):
                found[source.package, source.version] = "local/hpkit_local/toolchain/table.py"
    for where, text in workflows():
        for name, version in re.findall(r"pipx run ([\w.-]+)==(\S+)", text):
            found.setdefault((name, version), where)
    for (name, version), where in found.items():
        yield Part(name, version, where, partial(newest_package, name))


def newest_package(name: str) -> str:
    """Return the newest version of a Python package for this Python."""
    return str(json.loads(asked(sys.executable, "-m", "pip", "index", "versions", "--json", name))["latest"])


def other_parts() -> Iterator[Part]:
    """Yield charts, commits of other repositories, and the image of the pipeline for GitLab."""
    where = "infra/hpkit/catalog/data/dependencies.json"
    data = json.loads((ROOT / where).read_text(encoding="utf-8"))
    repositories = [source["url"].removesuffix("/index.yaml") for source in data["sources"].values()]
    for chart in (data["keda"], *data["chart"]["subcharts"]):
        url = next(url for url in repositories if chart["url"].startswith(f"{url}/"))
        yield Part(chart["name"], chart["version"].removeprefix("v"), where, partial(newest_chart, chart["name"], url))
    yield Part(data["chart"]["name"], data["chart"]["commit"], where, partial(head_of, data["chart"]["repository"]))
    rules = ROOT / "tests/security/scanners/semgrep-rules.commit"
    url = "https://github.com/semgrep/semgrep-rules"
    yield Part(
        "semgrep-rules", rules.read_text(encoding="utf-8").strip(), str(rules.relative_to(ROOT)), partial(head_of, url)
    )
    pipeline = ROOT / "infra/hpkit/scaffold/templates/gitlab-ci.yml"
    (python,) = re.findall(r"image: python:([\d.]+)-\S*@sha256", pipeline.read_text(encoding="utf-8"))
    line = python.rpartition(".")[0] + "."
    yield Part(
        "image python",
        python,
        str(pipeline.relative_to(ROOT)),
        partial(newest_release, "https://github.com/python/cpython", line),
    )


def newest_chart(name: str, repository: str) -> str:
    """Return the newest version of a chart."""
    return str(
        yaml.safe_load(asked(str(tool_path("helm")), "show", "chart", name, "--repo", repository))["version"]
    ).removeprefix("v")


def rows_of(part: Part) -> list[tuple[str, str, str, str]]:
    """Return the rows of a part: none if its version is the newest. Raises UnansweredError."""
    newest = part.newest()
    if part.name == "requirements.lock":
        return [(each["name"], each["version"], each["latest_version"], part.where) for each in json.loads(newest)]
    return [(part.name, part.pinned, newest, part.where)] if is_newer(newest, part.pinned) else []


def report(parts: Sequence[Part]) -> str:
    """Return the table of newer versions, and the parts without an answer."""
    rows, silent = [], []
    with ThreadPoolExecutor(8) as pool:
        for part, answer in [(part, pool.submit(rows_of, part)) for part in parts]:
            try:
                rows += answer.result()
            except UnansweredError as reason:
                silent.append(f"- {part.name}: {reason}")
    lines = [f"newer versions: {len(rows)}", ""]
    if rows:
        lines += ["| part | pinned | newest | file | moves with |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} | {FOLLOWS.get(row[0], '')} |" for row in rows]
    if silent:
        lines += ["", "not looked up, because the registry didn't answer:", "", *silent]
    return "\n".join(lines)


def main() -> None:
    """Print the report."""
    get_all([tool for tool in TOOLS if tool.name == "helm"], say=lambda line: print(line, file=sys.stderr))
    print(report([*python_parts(), *go_parts(), *action_parts(), *other_parts()]))


if __name__ == "__main__":
    main()
