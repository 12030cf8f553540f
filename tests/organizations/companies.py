"""Organizations of companies with different structures: a few bases, and each company's differences."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from hpkit.config import Organization, parse, read_text
from hpkit.config.reading.edit import Layout, Value, patched

__all__ = ["Company", "companies"]

FOLDER = Path(__file__).parent
INDENT = " " * 4


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Changes(_Strict):
    replace: dict[str, str] = {}
    change: dict[str, Any] = {}
    remove: tuple[str, ...] = ()


class _Environment(_Changes):
    of: str


class _Repeated(_Strict):
    count: int
    value: Any


class _Row(_Changes):
    base: str
    repeat: dict[str, _Repeated] = {}
    environments: dict[str, _Environment] = {}
    warnings: tuple[str, ...] = ()
    policy: dict[str, Any] = {}


@dataclass(frozen=True)
class Company:
    """An organization file, and the expected results."""

    name: str
    text: str
    warnings: tuple[str, ...]
    policy: dict[str, Any] = field(hash=False)

    @cached_property
    def organization(self) -> Organization:
        """Return the typed contents of the file."""
        organization = parse(read_text(self.text.encode())).organization
        assert organization is not None, self.name
        return organization


@cache
def companies() -> dict[str, Company]:
    """Return all companies by name."""
    text = (FOLDER / "companies.yaml").read_text(encoding="utf-8")
    rows = {name: _Row.model_validate(row) for name, row in read_text(text.encode()).data.items()}
    bases, table = Layout((FOLDER / "bases.yaml").read_text(encoding="utf-8")), Layout(text)
    return {name: _company(name, row, bases, table) for name, row in rows.items()}


def _company(name: str, row: _Row, bases: Layout, table: Layout) -> Company:
    text = "\n".join(bases.value(row.base).lines()) + "\n"
    text = _replaced(text, {f"organization: {row.base}": f"organization: {name}", **row.replace})
    text = _changed(text, row, table, [name])
    for path, repeated in row.repeat.items():
        source = "\n".join(table.value(name, "repeat", path, "value").lines())
        numbers = [f"{number:02}" for number in range(1, repeated.count + 1)]
        layout = Layout(text)
        parts = [(path.replace("$n", number), source.replace("$n", number)) for number in numbers]
        if path.endswith("[+]"):
            parts = [(path, f"[{', '.join(value for _, value in parts)}]")]
        text = patched(text, [edit for path, value in parts for edit in layout.set(path, _value(value))])
    for environment, copied in row.environments.items():
        lines = Layout(text).value("environments", copied.of).lines()
        block = _replaced("\n".join(lines) + "\n", copied.replace)
        block = _changed(block, copied, table, [name, "environments", environment])
        text += f"  {environment}:\n" + "".join(f"{INDENT}{line}\n" for line in block.splitlines())
    return Company(name, text, row.warnings, row.policy)


def _changed(text: str, changes: _Changes, table: Layout, where: list[str]) -> str:
    layout = Layout(text)
    edits = [layout.remove(path) for path in changes.remove]
    for path in changes.change:
        edits += layout.set(path, table.value(*where, "change", path))
    return patched(text, edits)


def _replaced(text: str, texts: dict[str, str]) -> str:
    for old, new in texts.items():
        assert old in text, f"`{old}` is not in the base"
        text = text.replace(old, new)
    return text


def _value(text: str) -> Value:
    return Layout(f"value: {text}").value("value")
