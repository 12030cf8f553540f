"""The project on disk: the files of a stack, their findings, and the plan of each environment."""

import datetime
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from hpkit.checks import Finding, check, fold
from hpkit.checks.cluster import is_same_cluster, less_than_stated, second_governance
from hpkit.checks.rule import Severity
from hpkit.config import Document, Organization, Parsed, parse, read_file, read_text
from hpkit.config.models.base import is_name
from hpkit.config.models.organization import KEYS_OF_FILES, Environment
from hpkit.config.reading.chart import chart_problems
from hpkit.config.reading.compose import composed, default_name
from hpkit.config.reading.document import Mark, Problem, format_path
from hpkit.config.reading.document import Path as DocumentPath
from hpkit.config.reading.folder import DiskFolder
from hpkit.errors import InputError, SelectionError, ToolError
from hpkit.plan.derive import derive, derive_all
from hpkit.plan.model import Plan
from hpkit.plan.names import role_name
from hpkit.root import project_root
from hpkit.text.formatting import is_loopback, listing
from hpkit.text.spelling import near

__all__ = [
    "Loaded",
    "cluster_problems",
    "described_by",
    "environments_in",
    "is_local",
    "listed_findings",
    "load",
    "load_stack",
    "organization_files",
    "parts_of_stack",
    "policy_file",
    "policy_settings",
    "problems_with_others",
    "project_findings",
    "project_root",
    "pulumi_project",
    "read_settings",
    "require_environment",
    "require_names",
    "select",
    "stack_config",
    "stack_file_problems",
    "stack_names",
    "today",
    "without_parts",
]

# The keys that the program reads from a stack's own file.
_KEYS: Final = ("hpkit:organization", "hpkit:environment")
_PLUGIN: Final = "hyperpod"
# Folders of files that aren't part of a project, such as standard input.
_PIPES: Final = ("/dev", "/proc")


@dataclass(frozen=True)
class Loaded:
    """One organization file with its contents; environment limits it to one stack."""

    file: str
    document: Document
    parsed: Parsed
    environment: str | None = None

    @cached_property
    def plans(self) -> Mapping[str, Plan]:
        """Environment → its plan, derived once; empty if the file has format errors."""
        organization = self.parsed.organization
        if organization is None:
            return {}
        if self.environment is None:
            return derive_all(organization)
        there = self.environment in organization.environments
        return {self.environment: derive(organization, self.environment)} if there else {}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding in the file, as of today."""
        return self.findings_on(today())

    @cached_property
    def listed_findings(self) -> tuple[Finding, ...]:
        """The findings for a list: one finding for a value that several environments or teams share."""
        return tuple(fold(self.findings_on(today(), by_place=True)))

    def findings_on(self, day: datetime.date, *, by_place: bool = False) -> tuple[Finding, ...]:
        """Return every finding in the file on a day; for one stack, without findings of other environments."""
        parsed = self.parsed
        if parsed.organization is not None:
            charts = chart_problems(project_root(), parsed.organization)
            parsed = replace(parsed, problems=(*parsed.problems, *charts, *self._file_name(parsed.organization)))
        findings = check(
            parsed,
            self.plans,
            file=self.file,
            today=day,
            policies=self._policies(),
            environment=self.environment,
            by_place=by_place,
        )
        return tuple(findings)

    def _policies(self) -> Mapping[str, Any]:
        """Return the settings in the organization's policy file; nothing if it's invalid, which `--policies` reports.

        Only waivers are compared with it, so it isn't read if there are no waivers.
        """
        organization = self.parsed.organization
        if organization is None or not any(spec.waivers for spec in organization.environments.values()):
            return {}
        with suppress(InputError):
            found = policy_settings(organization.organization)
            return {} if found is None else read_settings(*found)
        return {}

    def _file_name(self, organization: Organization) -> Iterator[Problem]:
        """Compare the name of a file in stacks/, by which stacks find it, with the organization's name."""
        file, name = Path(self.file), organization.organization
        if file.stem != name and file.parent.resolve() == (project_root() / "stacks").resolve():
            yield Problem(
                "CFG007",
                ("organization",),
                f"the organization is {name}, but its file is {file.name}; the stack {name}-{{environment}} reads "
                f"stacks/{name}.yaml",
                f"Use `{file.stem}`, or rename the file to {name}.yaml.",
            )


def today() -> datetime.date:
    """Return the date on which files are checked, in UTC."""
    return datetime.datetime.now(tz=datetime.UTC).date()


def pulumi_project(root: Path) -> tuple[str, str]:
    """Return the name of the Pulumi project in a folder, and the folder of its program, relative to that folder.

    Raises InputError if Pulumi.yaml has no name.
    """
    data = read_text(read_file(root / "Pulumi.yaml")).data
    name, main = (data.get("name"), data.get("main")) if isinstance(data, dict) else (None, None)
    if not isinstance(name, str):
        raise InputError(f"{os.path.relpath(root / 'Pulumi.yaml')}: `name` is missing; write the project's name")
    return name, main if isinstance(main, str) else "."


def require_environment(root: Path) -> None:
    """Raise ToolError if the virtual environment or plugin folder in Pulumi.yaml lacks required files.

    Pulumi reports a missing one without the name of the file that refers to it.
    """
    data = read_text(read_file(root / "Pulumi.yaml")).data
    environment = _value_in(data, "runtime", "options", "virtualenv")
    providers = _value_in(data, "plugins", "providers")
    needed = [("runtime.options.virtualenv", environment, "bin/python")]
    needed += [
        ("plugins.providers.path", _value_in(provider, "path"), f"pulumi-resource-{_PLUGIN}")
        for provider in (providers if isinstance(providers, list | tuple) else ())
        if _value_in(provider, "name") == _PLUGIN
    ]
    own = Path(sys.prefix)
    for key, folder, file in needed:
        if isinstance(folder, str) and not (root / folder / file).exists():
            raise ToolError(
                f"{os.path.relpath(root / 'Pulumi.yaml')}: {key} is {folder}, and {folder}/{file} doesn't exist. "
                f"Install hpkit there, or use the environment of this hpkit: set "
                f"runtime.options.virtualenv to {own}, and plugins.providers.path to {own / 'bin'}"
            )


def _value_in(data: Any, *keys: str) -> Any:
    """Return the value at a path of nested mappings, or None."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def is_local(environment: Mapping[str, str]) -> bool:
    """Return whether the AWS SDKs use an endpoint on this machine, the local cloud, because of its variables."""
    return is_loopback(environment.get("AWS_ENDPOINT_URL", ""))


def organization_files(root: Path | None = None) -> list[Path]:
    """Return all organization files of the project, sorted.

    root: the project's folder, by default found from here upward.
    """
    folder = (root or project_root()) / "stacks"
    return sorted(file for file in folder.glob("*.yaml") if not file.name.startswith("Pulumi."))


def stack_names(root: Path | None = None) -> list[str]:
    """Return the stacks that the project's organization files describe, sorted, including those in files with errors.

    root: the project's folder, by default found from here upward.
    """
    names: list[str] = []
    for file in organization_files(root):
        with suppress(InputError):
            names += (f"{file.stem}-{name}" for name in environments_in(read_text(read_file(file))))
    return sorted(names)


def _file_meant(file: str) -> str:
    """Return a hint about which organization file the user probably meant, if one can't be read."""
    if file == "-":
        return "For standard input, use /dev/stdin."
    files = [os.path.relpath(each) for each in organization_files() if not each.is_dir()]
    file_name = Path(file).name
    stacks = stack_names()
    if file in stacks:
        return f"Use --stack {file}: {file} is a stack."
    named = [each for each in files if Path(each).stem == file_name or Path(each).name == file_name]
    likely = named[0] if named else near(file, files)
    if Path(file).is_dir() and Path(file).resolve() in [each.resolve() for each in organization_files()]:
        return "Rename or remove it: in stacks/, names that end in .yaml are files."
    if Path(file).is_dir() and files:
        return f"Use a file such as {files[0]}. Without a file, all files of the project are checked."
    return f"Did you mean {likely}?" if likely else "Check the file name."


def load(file: str | os.PathLike[str], environment: str | None = None, *, shown_name: str | None = None) -> Loaded:
    """Read one file. All problems, even a missing file, are part of the result."""
    if shown_name is None:
        # Files in the project are shown relative to its folder, others as the user typed them.
        inside = Path(file).is_absolute() and Path(file).is_relative_to(Path.cwd())
        shown_name = os.path.relpath(file) if inside else os.fspath(file)
    try:
        document = _composed(file, shown_name, read_file(file))
    except InputError as error:
        what, _, instruction = str(error).removeprefix(f"{os.fspath(file)}: ").partition("; ")
        fix = f"{instruction.capitalize()}." if instruction else _file_meant(shown_name)
        problem = Problem("CFG005", (), what, fix, Mark(1, 1))
        document = Document(None, (problem,), None)
    return Loaded(shown_name, document, parse(document), environment)


def _composed(file: str | os.PathLike[str], shown_name: str, content: bytes) -> Document:
    """Read an organization file with the files that it includes.

    Their paths are relative to its folder, or for a pipe, to the current folder.
    """
    folder, own = os.path.split(shown_name)
    if any(Path(folder).is_relative_to(each) for each in _PIPES):
        return composed(read_text(content), DiskFolder(Path()), "")
    prefix = f"{folder}{os.sep}" if folder and folder != os.sep else folder
    return composed(read_text(content), DiskFolder(Path(file).parent), own, prefix)


def load_stack(name: str, *, root: Path | None = None) -> Loaded:
    """Read a stack's file, limited to its environment. Raises SelectionError if the stack doesn't exist.

    root: the project's folder, by default found from here upward.
    """
    folder = (root or project_root()) / "stacks"
    organization, environment = described_by(name, root=root)
    file = folder / f"{organization}.yaml"
    if not file.is_file():
        known = [path.stem for path in organization_files(root)]
        likely = near(organization, known)
        hint = f"did you mean {likely}-{environment}?" if likely else f"known: {', '.join(known) or 'none'}"
        if file.with_suffix(".yml").is_file():
            hint = f"rename {organization}.yml to {organization}.yaml"
        raise SelectionError(f"the stack {name} requires {os.path.relpath(file)}, which doesn't exist ({hint})")
    loaded = load(file, environment)
    known_environments = environments_in(loaded.document)
    if known_environments and environment not in known_environments:
        raise SelectionError(
            f"{os.path.relpath(file)} has no environment `{environment}` (it has {', '.join(known_environments)})"
        )
    return loaded


def described_by(stack: str, *, root: Path | None = None) -> tuple[str, str]:
    """Return a stack's organization and environment, from its settings or its name.

    Raises SelectionError if a name isn't valid. root: the project's folder, by default found from here upward.
    """
    organization, environment = parts_of_stack(stack, stack_config(stack, root=root))
    if not organization or not environment:
        raise SelectionError(f"`{stack}` isn't a valid stack name; use <organization>-<environment>")
    require_names(stack, organization, environment)
    return organization, environment


def parts_of_stack(stack: str, config: Mapping[str, Any]) -> tuple[str, str]:
    """Return a stack's organization and environment: from its settings, or from its name, split at the last `-`."""
    by_name = stack.rpartition("-")[::2]
    organization, environment = (
        config[key] if isinstance(config.get(key), str) else part for key, part in zip(_KEYS, by_name, strict=True)
    )
    return organization, environment


def select(files: Iterable[str], stacks: Iterable[str]) -> list[Loaded]:
    """Return the given files, the given stacks, or the whole project.

    Raises SelectionError if both are given, a stack has no file, or nothing exists.
    """
    files, stacks = list(dict.fromkeys(files)), list(dict.fromkeys(stacks))
    if files and stacks:
        raise SelectionError("use either files or stacks, not both")
    if stacks:
        return [load_stack(name) for name in stacks]
    if files:
        return [load(file) for file in files]
    own_files = organization_files()
    if not own_files:
        folder = project_root() / "stacks"
        nearly = sorted(file.name for file in folder.glob("*.yml") if not file.name.startswith("Pulumi."))
        hint = (
            f"rename {nearly[0]} to {Path(nearly[0]).stem}.yaml"
            if nearly
            else "name one, or run `hpkit init` to start from an example"
        )
        raise SelectionError(f"no organization file in {folder}; {hint}")
    return without_parts([load(file) for file in own_files])


def without_parts(loaded: Sequence[Loaded]) -> list[Loaded]:
    """Return organization files without those that are part of another; such a file has no environments.

    While a path to a part is wrong, the user might mean a file with only the keys of a part.
    """
    parts = {name for each in loaded for name in each.document.parts}
    is_path_wrong = any(problem.rule == "CFG014" for each in loaded for problem in each.document.problems)
    return [
        organization_file
        for organization_file in loaded
        if environments_in(organization_file.document)
        or not (organization_file.file in parts or (is_path_wrong and _can_be_part(organization_file.document)))
    ]


def _can_be_part(document: Document) -> bool:
    """Return whether a file has only keys that an included file can have, and at least one."""
    allowed = {key for keys in KEYS_OF_FILES.values() for key in keys}
    data = document.parts.get("", document).data
    return isinstance(data, dict) and bool(data) and data.keys() <= allowed


def policy_file(organization: str) -> str:
    """Return the name of an organization's policy file in the project."""
    return f"stacks/{organization}.policy.json"


def policy_settings(organization: str) -> tuple[str, str] | None:
    """Return the name and text of an organization's policy file, or None if it has none."""
    name = policy_file(organization)
    file = project_root() / name
    if not file.is_file():
        return None
    try:
        return name, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: can't be read ({error})") from None


def read_settings(name: str, text: str | bytes) -> Mapping[str, Any]:
    """Return the settings of a policy file, by policy. Raises InputError if it isn't a JSON object."""
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: invalid JSON: {error.msg}") from None
    except ValueError as error:
        raise InputError(f"{name}: invalid JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise InputError(f"{name}: must be a JSON object that maps policies to settings")
    return data


def require_names(stack: str, organization: str, environment: str) -> None:
    """Raise SelectionError unless a stack's organization and environment are names, not paths.

    Only files in stacks/ are reviewed and validated, so a stack must not use other files.
    """
    for key, value in (("organization", organization), ("environment", environment)):
        if not is_name(value):
            raise SelectionError(
                f"hpkit:{key} of the stack {stack} is `{value}`, which isn't a valid name: use lowercase letters, "
                f"digits and hyphens, as in `hpkit:{key}: acme`. The file is stacks/<organization>.yaml"
            )


def listed_findings(loaded: Iterable[Loaded], *, every_place: bool = False) -> list[Finding]:
    """Return the findings in organization files without duplicates.

    A finding in shared defaults lists the files that use it. every_place: return a mistake once for each of its lines.
    """
    users: dict[Finding, list[str]] = {}
    for file in loaded:
        untaken = tuple(default_name(format_path(path, file.document.data)) for path in file.document.untaken)
        for finding in file.findings_on(today(), by_place=True) if every_place else file.listed_findings:
            is_used = bool(finding.path) and not finding.path.startswith(untaken)
            is_shared = is_used and finding.file == file.document.defaults
            users.setdefault(finding, []).extend([_use(file, finding)] if is_shared else [])
    return [
        replace(finding, message=f"{finding.message}; used by {listing(files)}") if files else finding
        for finding, files in users.items()
    ]


def _use(loaded: Loaded, finding: Finding) -> str:
    """Return where an organization file uses a shared default: its environment, or its key `defaults`."""
    of_environment = finding.path.split(".")[:2]
    path = tuple(of_environment) if of_environment[0] == "environments" else ("defaults",)
    mark = loaded.document.locate(path, key=True)
    return f"{loaded.file}:{mark.line}"


def project_findings(loaded: Iterable[Loaded]) -> list[Finding]:
    """Return the problems in the project's other files, and conflicts between its organization files."""
    organizations = list(loaded)
    environments = {Path(each.file).stem: environments_in(each.document) for each in organizations}
    folder = project_root() / "stacks"
    files = sorted([*folder.glob("Pulumi.*.yaml"), *folder.glob("*.yml")])
    documents = {os.path.relpath(file): read_text(read_file(file)) for file in files}
    return [*stack_file_problems(documents, environments), *cluster_problems(organizations)]


def stack_file_problems(documents: Mapping[str, Document], environments: Mapping[str, list[str]]) -> list[Finding]:
    """Return the problems of stack files and of files with similar names.

    environments: organization → its environments.
    """
    findings: list[Finding] = []
    stacks: dict[tuple[str, str], str] = {}
    for file, document in documents.items():
        name = Path(file).name
        if name.endswith(".yml"):
            findings += _not_read(file, name, document)
            continue
        wrong = _wrong_stack_file(name, document, environments, [Path(each).name for each in documents])
        if wrong is None:
            meant = parts_of_stack(_stack_of(name), _config_of(document))
            findings += _second_stack(file, document, stacks.setdefault(meant, name), meant)
            findings += _unknown_keys(file, document)
        else:
            mark, message, fix = wrong
            findings.append(Finding("CFG008", "error", "", file, mark.line, mark.column, message, fix))
    return findings


def cluster_problems(loaded: Iterable[Loaded]) -> list[Finding]:
    """Return conflicts between environments in different files: the same cluster, or overlapping role names."""
    findings: list[Finding] = []
    stacks: list[tuple[Loaded, Plan]] = []
    by_cluster: dict[tuple[str, str], list[tuple[Loaded, Plan]]] = {}
    for file in loaded:
        for plan in file.plans.values():
            namesakes = by_cluster.setdefault((plan.spec.cluster.name, plan.spec.region), [])
            others = [(other, taken) for other, taken in namesakes if not _is_one_file(other, file)]
            first = next((pair for pair in others if _both_create(plan.spec, pair[1].spec)), None)
            findings += [] if first is None else [_same_cluster((file, plan), first)]
            for earlier in others:
                findings += [*_between_stacks((file, plan), earlier), *_between_stacks(earlier, (file, plan))]
            namesakes.append((file, plan))
            for stack in stacks:
                findings += [*_same_roles((file, plan), stack), *_same_roles(stack, (file, plan))]
            stacks.append((file, plan))
    return findings


def problems_with_others(own: Loaded) -> list[Finding]:
    """Return the errors in a stack's environment that only a comparison with the project's other files shows."""
    others = [load(file) for file in organization_files() if file.resolve() != Path(own.file).resolve()]
    return [
        finding
        for plan in own.plans.values()
        for other in without_parts(others)
        for taken in other.plans.values()
        for finding in (*_between_stacks((own, plan), (other, taken)), *_same_roles((own, plan), (other, taken)))
    ]


def _is_one_file(one: Loaded, other: Loaded) -> bool:
    return Path(one.file).resolve() == Path(other.file).resolve()


def _both_create(one: Environment, other: Environment) -> bool:
    return not one.cluster.existing and not other.cluster.existing and is_same_cluster(one, other)


def _same_cluster(own: tuple[Loaded, Plan], earlier: tuple[Loaded, Plan]) -> Finding:
    (file, plan), (_, other_plan) = own, earlier
    cluster, region = plan.spec.cluster.name, plan.spec.region
    message = (
        f"{plan.stack} and {other_plan.stack} ({_place(earlier, 'cluster', 'name')}) both have a cluster {cluster} in "
        f"{region}; cluster names are unique in an account and region"
    )
    # If two names in one account are the same, one must change. If the accounts aren't set, setting them can be
    # enough.
    is_same_account = plan.spec.account and other_plan.spec.account
    # Stack names are unique in a repository, but `cluster` with the environment's name can exist in a third file.
    fix = f"Use `{plan.stack}`" + (
        "." if is_same_account else "; or, if their accounts differ, set `account` in both files."
    )
    return _between("CFG011", "warning", file, ("environments", plan.environment, "cluster", "name"), message, fix)


def _between_stacks(own: tuple[Loaded, Plan], other: tuple[Loaded, Plan]) -> Iterator[Finding]:
    """Yield conflicts between a stack and a stack of another file.

    Both govern one cluster, or it has less than stated here.
    """
    (file, plan), (_, other_plan) = own, other
    second = second_governance(plan.spec, other_plan.spec, plan.stack, other_plan.stack)
    if second is not None:
        message, fix = second
        message += f"; `governance` of {other_plan.stack} is at {_place(other, 'governance')}"
        yield _between("CLU050", "error", file, ("environments", plan.environment, "governance"), message, fix)
    is_known = plan.spec.account and other_plan.spec.account
    choice = "" if is_known else " Or, if their accounts differ, set `account` in both."
    for issue in less_than_stated(plan, other_plan, plan.stack, other_plan.stack):
        elsewhere = f"{issue.message}; {issue.other_name} is at {_place(other, *(issue.other or ())[2:])}"
        yield _between("CLU051", "error", file, issue.path, elsewhere, issue.fix + choice)


def _same_roles(own: tuple[Loaded, Plan], other: tuple[Loaded, Plan]) -> Iterator[Finding]:
    """Yield a finding if IAM policies that name a stack's roles by their prefix also include another stack's roles."""
    (file, plan), (_, other_plan) = own, other
    prefix, other_prefix = role_name(plan, ""), role_name(other_plan, "")
    accounts = {each.spec.account for each in (plan, other_plan) if each.spec.account}
    if prefix != other_prefix and other_prefix.startswith(prefix) and len(accounts) < 2:
        message = (
            f"role names of {plan.stack} begin with {prefix}, and so do those of {other_plan.stack} "
            f"({_place(other, 'region')}), so deployers of {plan.stack} could change them"
        )
        fix = "Rename one of the organizations or environments, or deploy them to different accounts."
        yield _between("CFG015", "error", file, ("environments", plan.environment, "region"), message, fix)


def _place(of: tuple[Loaded, Plan], *path: str | int) -> str:
    mark = of[0].document.locate(("environments", of[1].environment, *path))
    return f"{mark.file or of[0].file}:{mark.line}:{mark.column}"


def _between(rule: str, severity: Severity, own: Loaded, path: DocumentPath, message: str, fix: str) -> Finding:
    mark = own.document.locate(path)
    place = format_path(path, own.document.data)
    return Finding(rule, severity, place, mark.file or own.file, mark.line, mark.column, message, fix)


def _not_read(file: str, name: str, document: Document) -> Iterator[Finding]:
    if name.startswith("Pulumi.") or (isinstance(document.data, dict) and "organization" in document.data):
        meant = f"{name.removesuffix('.yml')}.yaml"
        message = f"stacks/{name} is ignored: names of files in stacks/ must end in .yaml"
        yield Finding("CFG007", "error", "", file, 1, 1, message, f"Rename it to {meant}.")


def _second_stack(file: str, document: Document, first: str, stack_parts: tuple[str, str]) -> Iterator[Finding]:
    if first != Path(file).name:
        mark = document.locate(("config", "hpkit:environment"), key=True)
        message = (
            f"{Path(file).name} and {first} are two stacks of {'-'.join(stack_parts)}, and both would create all of "
            "its "
            "resources"
        )
        fix = f"Remove one of them, or set another environment under config: `{_KEYS[1]}: …`."
        yield Finding("CFG008", "warning", "", file, mark.line, mark.column, message, fix)


def _unknown_keys(file: str, document: Document) -> Iterator[Finding]:
    config = _config_of(document)
    for key in config:
        if not str(key).startswith("hpkit:") or key in _KEYS:
            continue
        mark = document.locate(("config", key), key=True)
        likely = near(key, [each for each in _KEYS if each not in config])
        message = f"`{key}` has no effect: the program's only own keys are {' and '.join(_KEYS)}"
        fix = f"Did you mean `{likely}`?" if likely else "Remove it."
        yield Finding("CFG008", "error" if likely else "warning", "", file, mark.line, mark.column, message, fix)


def _wrong_stack_file(
    file: str, document: Document, environments: Mapping[str, list[str]], file_names: list[str]
) -> tuple[Mark, str, str] | None:
    if document.problems:
        first = document.problems[0]
        return first.mark or Mark(1, 1), first.message, first.fix
    name = _stack_of(file)
    organization, environment = parts_of_stack(name, _config_of(document))
    key = f"hpkit:{'environment' if organization in environments else 'organization'}"
    mark = document.locate(("config", key), key=True)
    if organization not in environments:
        problem = (
            f"the stack's organization `{organization}` has no file"
            if organization
            else "the stack file sets no organization, and the organization in its name has no file"
        )
        choices = ", ".join(f"`{each}`" for each in sorted(environments))
        fix = f"Set `{key}: …` under config to one of {choices}. Or remove the file."
        if f"{organization}.yml" in file_names:
            fix = f"Rename {organization}.yml to {organization}.yaml."
        return mark, f"{problem} in stacks/", fix
    if environments[organization] and environment not in environments[organization]:
        choices = ", ".join(f"`{each}`" for each in environments[organization])
        message = f"stacks/{organization}.yaml has no environment `{environment}`"
        return mark, message, f"Set `{key}: …` under config to one of {choices}. Or remove the file."
    by_name = parts_of_stack(name, {})
    if by_name[1] in environments.get(by_name[0], ()) and (organization, environment) != by_name:
        key = _KEYS[organization == by_name[0]]
        mark = document.locate(("config", key), key=True)
        message = f"the stack file's name is {name}, but it configures environment {environment} of {organization}"
        return mark, message, f"Remove `{key}` and the other key, or rename the file and its stack."
    return None


def stack_config(stack: str, *, root: Path | None = None) -> dict[str, Any]:
    """Return the configuration in a stack's own file, or {}. Raises SelectionError if the file is invalid."""
    settings = (root or project_root()) / "stacks" / f"Pulumi.{stack}.yaml"
    if not settings.is_file():
        return {}
    document = read_text(read_file(settings))
    if document.problems:
        problem = document.problems[0]
        mark = problem.mark or Mark(1, 1)
        place = f"{os.path.relpath(settings)}:{mark.line}:{mark.column}"
        raise SelectionError(f"{place}: {problem.message}. {problem.fix}")
    return _config_of(document)


def _stack_of(file: str) -> str:
    """Return the stack whose settings file has a name."""
    return file.removeprefix("Pulumi.").removesuffix(".yaml")


def _config_of(document: Document) -> dict[str, Any]:
    config = document.data.get("config") if isinstance(document.data, dict) else None
    return config if isinstance(config, dict) else {}


def environments_in(document: Document) -> list[str]:
    """Return the environment names in a text, even if the text has errors."""
    environments = document.data.get("environments") if isinstance(document.data, dict) else None
    return sorted(environments) if isinstance(environments, dict) else []
