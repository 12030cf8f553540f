"""Combines an organization file and the files that it refers to into one document.

`include` adds teams from other files. `defaults` refers to a file whose keys apply if the organization file doesn't set
them, and `environmentDefaults` in either applies to each environment. Maps are merged by key, and other values are
replaced.

Symbolic links aren't followed, paths can't leave the organization file's folder, and other files can't refer to further
files.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from hpkit.config.models.organization import FOR_ENVIRONMENTS, KEYS_OF_FILES, MOST_PATTERNS
from hpkit.config.reading.document import Document, Mark, Path, Problem, YamlNode, is_named
from hpkit.config.reading.folder import Entry, Folder
from hpkit.config.reading.load import MAX_BYTES, MAX_NODES, read_text, size
from hpkit.config.schema.contract import fields_at
from hpkit.errors import InputError
from hpkit.text.spelling import near

__all__ = ["composed", "default_name", "is_default"]

_ENDING: Final = ".yaml"
_BEGIN: Final = {
    "include": "Start with `teams:` and a list of teams.",
    "defaults": f"Start with one of the keys {', '.join(KEYS_OF_FILES['defaults'])}.",
}


def composed(document: Document, folder: Folder, own: str, prefix: str = "") -> Document:
    """Return an organization file combined with its other files.

    own: the file's name in its folder; prefix: the displayed prefix of names in that folder.
    """
    root = document.root
    if root is None or not isinstance(root.value, dict) or not root.value.keys() & {*KEYS_OF_FILES, FOR_ENVIRONMENTS}:
        return document
    return _Composing(document, root, folder, own, prefix).document()


def is_default(document: Document, path: Path, mark: Mark) -> bool:
    """Return whether an environment inherits a key or its value, whose position is mark, from environmentDefaults."""
    if path[:1] != ("environments",) or len(path) < 3:
        return False
    default = (FOR_ENVIRONMENTS, *path[2:])
    return any(mark in (part.locate(default), part.locate(default, key=True)) for part in document.parts.values())


def default_name(path: str) -> str:
    """Return the displayed path of a default, from its path in an environment: `environmentDefaults.eks`."""
    return re.sub(r"^environments\.[^.\[]+", FOR_ENVIRONMENTS, path)


@dataclass(frozen=True, slots=True)
class _Named:
    """A path that the organization file declares: its key, where it is, and the path itself."""

    key: str
    path: Path
    mark: Mark
    text: str


class _Composing:
    """One organization file on its way to a document of several files."""

    def __init__(self, document: Document, root: YamlNode, folder: Folder, own: str, prefix: str) -> None:
        self._own = document
        self._root = root
        self._folder = folder
        self._name = own
        self._prefix = prefix
        self._problems: list[Problem] = []
        self._parts: dict[str, Document] = {"": document}
        self._entries: dict[str, Mapping[str, Entry]] = {}

    def document(self) -> Document:
        references = list(self._named())
        files: dict[str, _Named] = {}
        # Of two paths that mean one file, the first counts.
        for reference in references:
            for name in self._matching(reference):
                files.setdefault(name, reference)
        parts = [(each, part) for each, part in self._read(files) if part.root is not None]
        teams = [part.root for each, part in parts if each.key == "include" and part.root]
        root = _with_teams(_without(self._root, self._understood()), teams)
        untaken: list[tuple[Path, YamlNode]] = []
        for reference, part in parts:
            if reference.key == "defaults" and part.root:
                untaken += _untaken(_without(part.root, {FOR_ENVIRONMENTS}), {(): root})
                root = _merged(root, part.root)
        root = self._bounded(root)
        untaken += self._untaken_by_environments(root)
        root = self._with_environments(root)
        first_teams: dict[str, int] = {}
        for index, team in enumerate(root.children["teams"].children.values() if "teams" in root.children else ()):
            first_teams.setdefault(team.mark.file, index)
        problems = [*self._placed(root, first_teams), *self._problems]
        return replace(
            self._own,
            data=root.value,
            root=root,
            problems=tuple(problems),
            parts=self._parts,
            first_teams=first_teams,
            reads=tuple(f"{self._prefix}{PurePosixPath(each.text)}" for each in references),
            defaults=next((f"{self._prefix}{name}" for name, each in files.items() if each.key == "defaults"), ""),
            is_whole=not self._problems,
            untaken=tuple(path for path, _ in untaken),
            with_untaken=self._with_untaken(root, untaken) if untaken else None,
        )

    def _understood(self) -> set[str]:
        """Return the resolved keys. A value of another type is kept, so that validation reports it."""
        data = self._own.data
        include = data.get("include")
        return {
            *(["defaults"] if isinstance(data.get("defaults"), str) else []),
            *(["include"] if isinstance(include, tuple) and all(isinstance(each, str) for each in include) else []),
        }

    def _named(self) -> Iterator[_Named]:
        """Yield the paths that are in order, and report the others."""
        stated: list[tuple[Path, object]] = [(("defaults",), self._own.data.get("defaults"))]
        include = self._own.data.get("include")
        if isinstance(include, tuple):
            stated += [(("include", index), each) for index, each in enumerate(include[:MOST_PATTERNS])]
        for path, text in stated:
            if isinstance(text, str):
                reference = _Named(str(path[0]), path, self._own.locate(path), text)
                wrong = _wrong_path(reference)
                if wrong is None:
                    yield reference
                else:
                    self._report(reference, *wrong)

    def _matching(self, reference: _Named) -> list[str]:
        """Return the files that match a path, sorted; reports a path without files, and files that can't be used."""
        *folders, last = PurePosixPath(reference.text).parts
        under = ""
        for step in folders:
            if self._listed(under).get(step) == "link":
                self._report(reference, f"`{under}{step}` is a symbolic link", "Replace it with the folder itself.")
                return []
            under += f"{step}/"
        listed = self._listed(under)
        matching_names = sorted(
            name for name in listed if is_named(last, name) and (listed[name] != "folder" or name == last)
        )
        good = [name for name in matching_names if listed[name] == "file" and under + name != self._name]
        for name in matching_names:
            if under + name == self._name:
                message, fix = (
                    f"`{reference.text}` includes the organization file itself",
                    "Use a path that excludes it.",
                )
                self._report(reference, message, fix)
            elif listed[name] != "file":
                what = "a symbolic link" if listed[name] == "link" else "not a regular file"
                self._report(reference, f"`{under}{name}` is {what}", "Replace it with a regular file.")
        if not matching_names and "*" in last:
            self._report(reference, f"`{reference.text}` matches no file", "Create such a file, or remove the entry.")
        elif not matching_names:
            # Without the endings, which make all names similar.
            stems = {
                PurePosixPath(name).stem: name
                for name, kind in listed.items()
                if kind == "file" and name.endswith(_ENDING) and under + name != self._name
            }
            likely = stems.get(near(PurePosixPath(last).stem, stems) or "")
            fix = f"Did you mean `{under}{likely}`?" if likely else "Create the file, or remove the path."
            self._report(reference, f"`{reference.text}` doesn't exist", fix)
        return [under + name for name in good]

    def _listed(self, under: str) -> Mapping[str, Entry]:
        if under not in self._entries:
            self._entries[under] = self._folder.entries(under.rstrip("/"))
        return self._entries[under]

    def _read(self, files: Mapping[str, _Named]) -> Iterator[tuple[_Named, Document]]:
        """Yield the contents of each file."""
        total = 0
        contents = self._folder.contents(list(files))
        for name, reference in files.items():
            try:
                content = next(contents)
            except (InputError, StopIteration) as error:
                self._report(reference, f"`{name}` can't be read: {error}", "Make it readable.")
                return
            total += len(content)
            if total > MAX_BYTES >= len(content):
                limit = f"{MAX_BYTES // 1024 // 1024} MiB"
                message = f"the files of an organization are larger than {limit} together"
                self._report(reference, message, "Keep generated lists out of them.")
                return
            shown_name = f"{self._prefix}{name}"
            part = _in_file(read_text(content), shown_name)
            root = self._checked(part, reference, shown_name)
            self._parts[shown_name] = replace(part, root=root, data=root.value if root else None)
            yield reference, self._parts[shown_name]

    def _checked(self, part: Document, reference: _Named, shown_name: str) -> YamlNode | None:
        """Return the valid top-level keys of another file, and report the others."""
        root, start = part.root, Mark(1, 1, shown_name)
        if root is None or not isinstance(root.value, dict):
            if not part.problems:
                message = "the file is empty" if root is None or root.value is None else "the file isn't a map"
                self._problems.append(
                    Problem("CFG005", (), message, _BEGIN[reference.key], root.mark if root else start)
                )
            else:
                # Placed here, since a file that can't be read has no value that a path could lead to.
                self._problems += part.problems
            return None
        allowed = KEYS_OF_FILES[reference.key]
        wrong = [key for key in root.keys if key not in allowed and not key.startswith("x-")]
        for key in wrong:
            likely = near(key, allowed)
            fix = f"Did you mean `{likely}`?" if likely else f"Known keys: {', '.join(allowed)}."
            if key in fields_at(()):
                fix = f"Move it to {self._prefix}{self._name}."
            message = f"a file in `{reference.key}` can't have the key `{key}`"
            self._problems.append(Problem("CFG001", (), message, fix, root.keys[key]))
        teams = root.children.get("teams")
        if reference.key == "include" and teams is None and not wrong:
            self._problems.append(Problem("CFG003", (), "`teams` is missing", _BEGIN["include"], root.mark))
        elif reference.key == "include" and teams is not None and not isinstance(teams.value, tuple):
            message, fix = "`teams` isn't a list", "Begin each team with `- name:`."
            self._problems.append(Problem("CFG002", (), message, fix, root.keys["teams"]))
            wrong.append("teams")
        return _without(root, {key for key in root.children if key not in allowed or key in wrong})

    def _bounded(self, root: YamlNode) -> YamlNode:
        """Return the root, or only the organization file's contents if the whole is too large."""
        if size(root) <= MAX_NODES:
            return root
        message = "the files of the organization contain more than a million values together"
        self._problems.append(Problem("CFG005", (), message, "Remove repeated aliases.", root.mark))
        return _without(self._root, self._understood())

    def _with_environments(self, root: YamlNode) -> YamlNode:
        """Return the root with the keys of environmentDefaults in each environment, and without that key."""
        defaults = root.children.get(FOR_ENVIRONMENTS)
        if defaults is None or not isinstance(defaults.value, dict):
            return root
        root = _without(root, {FOR_ENVIRONMENTS})
        # A misspelled key is reported later; its environments have the defaults, too.
        keys = [str(name) for name in root.children]
        key = "environments" if "environments" in keys else near("environments", keys) or ""
        environments = root.children.get(key)
        if environments is None or not isinstance(environments.value, dict):
            return root
        if len(environments.children) * size(defaults) > MAX_NODES:
            message = f"with `{FOR_ENVIRONMENTS}`, the environments contain more than a million values"
            fix = "Remove repeated aliases, or environments."
            self._problems.append(Problem("CFG005", (FOR_ENVIRONMENTS,), message, fix, defaults.mark))
            return root
        children = {
            name: _merged(environment, defaults)
            if isinstance(environment.value, dict)
            else defaults
            if _is_nothing(environment)
            else environment
            for name, environment in environments.children.items()
        }
        return _with(root, key, _map(environments, children, environments.keys))

    def _untaken_by_environments(self, root: YamlNode) -> list[tuple[Path, YamlNode]]:
        """Return the defaults that no environment takes."""
        defaults, environments = root.children.get(FOR_ENVIRONMENTS), root.children.get("environments")
        stated: dict[Path, YamlNode] = {
            ("environments", name): each for name, each in (environments.children if environments else {}).items()
        }
        if defaults is None or not stated or not all(isinstance(each.value, dict) for each in stated.values()):
            return []
        return list(_untaken(defaults, stated)) if isinstance(defaults.value, dict) else []

    def _with_untaken(self, root: YamlNode, untaken: Sequence[tuple[Path, YamlNode]]) -> Document:
        """Return the document with the defaults that are overridden, each in the first map that overrides it."""
        for path, node in untaken:
            root = _placed(root, path, node)
        return replace(self._own, data=root.value, root=root, parts=self._parts)

    def _report(self, named: _Named, message: str, fix: str) -> None:
        self._problems.append(Problem("CFG014", named.path, message, fix, named.mark))

    def _placed(self, root: YamlNode, first_teams: Mapping[str, int]) -> Iterator[Problem]:
        """Yield the problems of each file, with the paths that the values have in the composed document."""
        whole = Document(root.value, (), root)
        environments = root.children.get("environments")
        names = list(environments.children) if environments is not None else []
        for shown_name, part in self._parts.items():
            for problem in part.problems if part.root is not None else ():
                mark, (top, *rest) = problem.mark or part.locate(problem.path), problem.path or ("",)
                paths: list[Path] = [problem.path]
                if top == FOR_ENVIRONMENTS:
                    applied: list[Path] = [("environments", name, *rest) for name in names]
                    paths = [
                        way for way in applied if mark in (whole.locate(way), whole.locate(way, key=True))
                    ] or paths
                elif top == "teams" and rest and isinstance(rest[0], int):
                    paths = [("teams", first_teams.get(shown_name, 0) + rest[0], *rest[1:])]
                yield from (replace(problem, path=path, mark=mark) for path in paths)


def _wrong_path(reference: _Named) -> tuple[str, str] | None:
    """Return the problem of a path's text, and the fix."""
    text, path = reference.text, PurePosixPath(reference.text)
    quoted_path = f"`{text}`"
    if path.is_absolute() or "\\" in text or ":" in text or text.startswith("~"):
        return f"{quoted_path} isn't relative to the organization file's folder", "Use a path such as `teams/nlp.yaml`."
    if ".." in path.parts:
        return f"{quoted_path} leads out of the organization file's folder", "Move the file into that folder."
    if any(part.startswith(".") for part in path.parts):
        return f"{quoted_path} is hidden", "Use names that don't begin with a dot."
    if not text.endswith(_ENDING):
        fix = f"Rename it to {path.stem}{_ENDING}." if path.suffix == ".yml" else "Use a path such as `teams/nlp.yaml`."
        return f"{quoted_path} isn't the name of a {_ENDING} file", fix
    if text.count("*") > (reference.key == "include") or "*" in str(path.parent):
        if reference.key == "defaults":
            return f"{quoted_path} contains `*`, but `defaults` takes one file", "Use a path such as `shared.yaml`."
        message = f"{quoted_path} contains `*`, but only the file's name can contain `*`, once"
        return message, "List each file, or each folder."
    return None


def _in_file(document: Document, file: str) -> Document:
    """Return a document whose marks name its file."""
    todo, done = [document.root] if document.root is not None else [], set[int]()
    while todo:
        node = todo.pop()
        if id(node) not in done:
            done.add(id(node))
            node.mark = replace(node.mark, file=file)
            node.keys = {key: replace(mark, file=file) for key, mark in node.keys.items()}
            todo += node.children.values()
    problems = [replace(each, mark=each.mark and replace(each.mark, file=file)) for each in document.problems]
    return replace(document, problems=tuple(problems))


def _is_nothing(node: YamlNode) -> bool:
    """Return whether a key has no value; `null` and `~` turn off a default."""
    return node.value is None and node.raw == ""


def _map(node: YamlNode, children: dict[str | int, YamlNode], keys: dict[str, Mark]) -> YamlNode:
    return YamlNode({key: child.value for key, child in children.items()}, node.mark, node.raw, keys, children)


def _with(root: YamlNode, key: str, value: YamlNode) -> YamlNode:
    return _map(root, {**root.children, key: value}, {key: value.mark, **root.keys})


def _without(root: YamlNode, keys: Collection[str | int]) -> YamlNode:
    return _map(root, {key: child for key, child in root.children.items() if key not in keys}, root.keys)


def _merged(own: YamlNode, default: YamlNode) -> YamlNode:
    """Return a map with another map's keys that it doesn't have, without those that it turns off by `null`."""
    children, keys = dict(own.children), dict(own.keys)
    for key, value in default.children.items():
        stated = children.get(key)
        if stated is None or _is_nothing(stated):
            children[key], keys[str(key)] = value, default.keys[str(key)]
        elif stated.value is None:
            del children[key], keys[str(key)]
        elif isinstance(stated.value, dict) and isinstance(value.value, dict):
            children[key] = _merged(stated, value)
    return _map(own, children, keys)


def _untaken(default: YamlNode, stated: Mapping[Path, YamlNode]) -> Iterator[tuple[Path, YamlNode]]:
    """Yield what no map takes from a default because each sets a value or turns it off; a path is in the first map.

    stated: the maps that the default is for, by their paths.
    """
    for key, value in default.children.items():
        own = {path: node.children[key] for path, node in stated.items() if key in node.children}
        if len(own) < len(stated) or any(_is_nothing(each) for each in own.values()):
            continue
        maps = {(*path, key): each for path, each in own.items() if isinstance(each.value, dict)}
        if isinstance(value.value, dict) and maps:
            yield from _untaken(value, maps)
        else:
            yield (*next(iter(stated)), key), value


def _placed(node: YamlNode, path: Path, value: YamlNode) -> YamlNode:
    """Return a map with another value at a path below it."""
    step, *rest = path
    return _with(node, str(step), _placed(node.children[step], tuple(rest), value) if rest else value)


def _with_teams(root: YamlNode, parts: Sequence[YamlNode]) -> YamlNode:
    """Return the root with the teams of other files after its own."""
    lists = [part.children["teams"] for part in parts if "teams" in part.children]
    if "teams" in root.children and not _is_nothing(root.children["teams"]):
        lists = [root.children["teams"], *lists]
    if not lists or not isinstance(lists[0].value, tuple):
        return root
    teams = [team for each in lists for team in each.children.values()]
    value = tuple(team.value for team in teams)
    return _with(root, "teams", YamlNode(value, lists[0].mark, children=dict(enumerate(teams))))
