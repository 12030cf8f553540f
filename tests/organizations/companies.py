"""Organizations of companies with different structures: a few bases, and each company's differences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from generate.cases import change
from hpkit.config import Organization, parse, read_text
from hpkit.config.reading.edit import dumped, loaded

__all__ = ["Company", "companies"]

FOLDER = Path(__file__).parent


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
    (bases,), (table,) = loaded((FOLDER / "bases.yaml").read_text(encoding="utf-8")), loaded(text)
    return {name: _company(name, row, bases, table[name]) for name, row in rows.items()}


def _company(name: str, row: _Row, bases: Any, table: Any) -> Company:
    data = _changed(bases[row.base], row, table, {f"organization: {row.base}": f"organization: {name}"})
    for path, repeated in row.repeat.items():
        source = dumped([table["repeat"][path]["value"]], "")
        numbers = [f"{number:02}" for number in range(1, repeated.count + 1)]
        values = [loaded(source.replace("$n", number))[0] for number in numbers]
        if path.endswith("[+]"):
            change(data, {path: values}, ())
        else:
            change(data, {path.replace("$n", number): each for number, each in zip(numbers, values, strict=True)}, ())
    for environment, copied in row.environments.items():
        own = data["environments"][copied.of]
        data["environments"][environment] = _changed(own, copied, table["environments"][environment])
    return Company(name, dumped([data], ""), row.warnings, row.policy)


def _changed(base: Any, changes: _Changes, table: Any, more: Mapping[str, str] = {}) -> Any:
    """Return a changed copy of a map."""
    (data,) = loaded(_replaced(dumped([base], ""), {**more, **changes.replace}))
    change(data, table.get("change", {}), changes.remove)
    return data


def _replaced(text: str, texts: dict[str, str]) -> str:
    for old, new in texts.items():
        assert old in text, f"`{old}` is not in the base"
        text = text.replace(old, new)
    return text
