"""A plugin of pytest that runs each named test with one refusal of the local AWS endpoint switched off.

`pytest -p tests.local.aws.switched_off` with HPKIT_SWITCHED_OFF, a JSON file of test → file and line of the refusal:
what is raised there is not raised while that test runs. A test that still passes does not hold the refusal.
"""

import ast
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rewritten import rewrite

ROOT = Path(__file__).parents[3]
_FOLDER = ROOT / "local" / "hpkit_local" / "aws"
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


rewrite("hpkit_local.aws", lambda tree, path: _Conditional(str(path.relative_to(_FOLDER))).visit(tree))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Switch off what the test should hold, only while it runs: what its fixtures make is made as ever."""
    off.add(_WANTED[item.nodeid])
    try:
        return (yield)
    finally:
        off.clear()
