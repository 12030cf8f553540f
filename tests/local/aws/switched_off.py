"""A plugin of pytest that runs each named test with one refusal of the local AWS endpoint switched off.

`pytest -p tests.local.aws.switched_off` with HPKIT_SWITCHED_OFF, a JSON file of test → file and line of the refusal:
what is raised there is not raised while that test runs. A test that still passes does not hold the refusal.
"""

import ast
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_FOLDER = ROOT / "local" / "aws"
_WANTED = {
    test: (file, line) for test, (file, line) in json.loads(Path(os.environ["HPKIT_SWITCHED_OFF"]).read_text()).items()
}
off: set[tuple[str, int]] = set()


class _Conditional(ast.NodeTransformer):
    """Has every `raise` of a file ask first whether it is switched off."""

    def __init__(self, file: str) -> None:
        self._file = file

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        asked = (
            f"({self._file!r}, {node.lineno}) not in __import__('tests.local.aws.switched_off', fromlist=['off']).off"
        )
        return ast.copy_location(ast.If(ast.parse(asked, mode="eval").body, [node], []), node)


class _Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data: bytes, path: str, **_: object) -> object:
        tree = _Conditional(str(Path(path).relative_to(_FOLDER))).visit(ast.parse(data))
        return compile(ast.fix_missing_locations(tree), path, "exec")

    def get_code(self, fullname: str) -> object:
        # From the source, never from what another run has compiled.
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if not name.startswith("local.aws."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin and spec.submodule_search_locations is None:
            spec.loader = _Loader(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Switch off what the test should hold, only while it runs: what its fixtures make is made as ever."""
    off.add(_WANTED[item.nodeid])
    try:
        return (yield)
    finally:
        off.clear()
