"""Makes Pulumi's SDKs load only the modules of used resources. Import this module before them.

A package such as `pulumi_aws.ec2` loads the two hundred modules of all its resources on first use. That takes longer
than the rest of a run. Here, each package in PACKAGES loads only the module that defines a name. The SDKs have a module
for each resource, named after it, and `_inputs` for the arguments of their parts. For any other name, the package loads
everything, as usual.
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["PACKAGES"]

PACKAGES = (
    *(
        f"pulumi_aws.{name}"
        for name in ("amp", "cloudwatch", "ec2", "ecr", "eks", "fsx", "grafana", "iam", "kms", "s3", "sns", "vpc")
    ),
    *(
        f"pulumi_kubernetes.{name}.v1"
        for name in ("admissionregistration", "apps", "core", "meta", "rbac", "scheduling", "storage")
    ),
    "pulumi_kubernetes.helm.v3",
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class _Package(ModuleType):
    """A package whose names are looked for where they are defined."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for module in self._modules(name):
            attribute = vars(import_module(f"{self.__name__}.{module}")).get(name)
            if attribute is not None:
                setattr(self, name, attribute)
                return attribute
        if self._has(name):
            return import_module(f"{self.__name__}.{name}")
        self.__class__ = ModuleType  # type: ignore[assignment] # what Python allows of modules, and is meant here
        _loader(self).exec_module(self)
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Store a loaded module under its name, or what it defines with that name: Kubernetes has both."""
        super().__setattr__(name, vars(value).get(name, value) if isinstance(value, ModuleType) else value)

    def _modules(self, name: str) -> Iterator[str]:
        resource = name.removesuffix("Args")
        of_kubernetes, of_aws = resource, _WORDS.sub("_", resource).lower()
        yield from filter(self._has, (of_kubernetes, of_aws))
        if resource != name:
            yield "_inputs"

    def _has(self, module: str) -> bool:
        (folder,) = self.__path__
        return Path(folder, f"{module}.py").is_file() or Path(folder, module, "__init__.py").is_file()


def _loader(package: ModuleType) -> SourceFileLoader:
    assert package.__spec__ is not None  # noqa: S101 - each has one from below
    loader = package.__spec__.loader
    assert isinstance(loader, SourceFileLoader)  # noqa: S101
    return loader


def _put(name: str) -> None:
    """Register a package where `import` looks first, unless it's already loaded."""
    top, *inner = name.split(".")
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations or name in sys.modules:
        return
    folder = Path(spec.submodule_search_locations[0], *inner)
    loader = SourceFileLoader(name, str(folder / "__init__.py"))
    package = _Package(name)
    package.__path__, package.__package__, package.__loader__ = [str(folder)], name, loader
    package.__spec__ = ModuleSpec(name, loader, origin=loader.path, is_package=True)
    package.__spec__.submodule_search_locations = package.__path__
    package.__file__ = loader.path
    sys.modules[name] = package


for _name in PACKAGES:
    _put(_name)
