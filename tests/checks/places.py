"""Each place of the validator that finds something, switched off: which findings of which cases it takes away.

`python -m tests.checks.places` prints JSON: `unreached` places, which no case comes to, and `unneeded` ones, without
which every case finds what it did; and `rules` without whose function every case of theirs finds what it did. A place
is named by file and function, and by its number among those of the function.
"""

import ast
import json
from collections import defaultdict
from pathlib import Path

from tests.rewritten import rewrite

ROOT = Path(__file__).parents[2]
_FOUND = ("Issue", "PlacedIssue", "Problem")


class Switches:
    """What every place asks before it finds something.

    off: the place that finds nothing; asked: those that were come to; places: those that there are.
    """

    def __init__(self) -> None:
        self.places: set[str] = set()
        self.asked: set[str] = set()
        self.off = ""

    def finds(self, place: str) -> bool:
        """Say whether a place is on, and note that it was come to."""
        self.asked.add(place)
        return place != self.off


class _Conditional(ast.NodeTransformer):
    """Has every statement that yields or adds a finding ask first."""

    def __init__(self, file: str, known: Switches) -> None:
        self._switches = known
        self._file, self._yields, self._function, self._number = file, False, "", 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer = self._yields, self._function, self._number
        returned = "" if node.returns is None else ast.unparse(node.returns)
        self._yields = returned.startswith("Iter") and any(f"[{name}]" in returned for name in _FOUND)
        self._function, self._number = node.name, 0
        self.generic_visit(node)
        self._yields, self._function, self._number = outer
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if not (self._yields and isinstance(node.value, ast.Yield)) and not _adds(node.value):
            return node
        self._number += 1
        place = f"{self._file}:{self._function} {self._number}"
        self._switches.places.add(place)
        asked = f"__import__('tests.checks.places', fromlist=['switches']).switches.finds({place!r})"
        return ast.copy_location(ast.If(ast.parse(asked, mode="eval").body, [node], []), node)


def _adds(value: ast.expr) -> bool:
    """Say whether an expression is `….append(Problem(…))`."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "append"
        and any(isinstance(each, ast.Call) and ast.unparse(each.func) in _FOUND for each in value.args)
    )


switches = Switches()


def _main() -> None:
    # What is rewritten asks the module of this name, not the script.
    from tests.checks.places import switches

    for package in ("hpkit.checks", "hpkit.config"):
        rewrite(package, lambda tree, path: _Conditional(str(path.relative_to(ROOT / "infra")), switches).visit(tree))
    # Loaded when they are to be rewritten.
    from generate.cases import cases
    from hpkit.checks import engine

    all_cases = [case for file in sorted((ROOT / "tests/stacks/rules").glob("*.yaml")) for case in cases(file.stem)]
    before, come_to = [], defaultdict(list)
    for index, case in enumerate(all_cases):
        switches.asked.clear()
        before.append(case.findings())
        for place in switches.asked:
            come_to[place].append(index)
    unneeded, rules = [], []
    for place in sorted(come_to):
        switches.off = place
        if all(all_cases[index].findings() == before[index] for index in come_to[place]):
            unneeded.append(place)
    switches.off = ""
    whole = engine.RULES
    for rule in whole:
        engine.RULES = tuple(each for each in whole if each is not rule)
        own = [index for index, case in enumerate(all_cases) if case.rule == rule.id]
        if rule.check is not None and all(all_cases[index].findings() == before[index] for index in own):
            rules.append(rule.id)
    unreached = sorted(switches.places - come_to.keys())
    print(json.dumps({"places": len(come_to), "unreached": unreached, "unneeded": unneeded, "rules": rules}))


if __name__ == "__main__":
    _main()
