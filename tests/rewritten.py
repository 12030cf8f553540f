"""Modules that are loaded with their code rewritten, so that a part of it can be switched off while they run."""

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["rewrite"]

# Takes a module's code and its file.
Rewriter = Callable[[ast.Module, Path], ast.Module]


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, rewriter: Rewriter) -> None:
        super().__init__(name, path)
        self._rewriter = rewriter

    def source_to_code(self, data: bytes, path: str, **_: object) -> object:
        tree = self._rewriter(ast.parse(data), Path(path))
        return compile(ast.fix_missing_locations(tree), path, "exec")

    def get_code(self, fullname: str) -> object:
        # From the source, never from what another run has compiled.
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, package: str, rewriter: Rewriter) -> None:
        self._package, self._rewriter = package, rewriter

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if not name.startswith(f"{self._package}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin and spec.submodule_search_locations is None:
            spec.loader = _Loader(name, spec.origin, self._rewriter)
        return spec


def rewrite(package: str, rewriter: Rewriter) -> None:
    """Have every module inside a package rewritten that this process has not loaded yet."""
    sys.meta_path.insert(0, _Finder(package, rewriter))
