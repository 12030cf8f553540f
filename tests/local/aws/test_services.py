"""Each service of the local AWS endpoint and of the fake plugin is one folder: nothing outside it needs to change."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpkit_local.aws import api
from hpkit_local.aws.service import services
from hpkit_local.plugins.aws.table import FUNCTIONS, RESOURCE_TYPES

LOCAL = Path(api.__file__).parents[1]
FOLDERS = LOCAL / "aws" / "services"
SHARED = [
    file
    for room in ("aws", "plugins/aws")
    for file in sorted((LOCAL / room).rglob("*.py"))
    if not file.is_relative_to(FOLDERS)
]
# All services use the caller; requests without a signature name no service; and botocore has no copy of one model.
NAMED = {"calls.py": {"sts"}, "protocol.py": {"s3", "sagemaker"}, "api_models.py": {"s3"}}
PROTOCOLS = {"ec2", "query", "json", "rest-json", "rest-xml"}


def calls_in(folder: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield the calls in a folder, with their string arguments."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
                yield file, ast.unparse(node.func), [text for text in texts if isinstance(text, str)]


@pytest.mark.parametrize("file", SHARED, ids=[str(file.relative_to(LOCAL)) for file in SHARED])
def test_what_services_share_names_none_of_them(file):
    names = services().keys() | {service.moto for service in services().values()} - {""}
    tree = ast.parse(file.read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert texts & names - PROTOCOLS <= NAMED.get(file.name, set())
    imports = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    of_services = ("hpkit_local.aws.services.", *(f"moto.{name}." for name in names))
    assert not [module for module in imports if f"{module}.".startswith(of_services)]


def test_a_folder_holds_the_code_of_its_service_only():
    assert {name.replace("-", "_") for name in services()} == {
        folder.name for folder in FOLDERS.iterdir() if (folder / "__init__.py").is_file()
    }
    for file, function, texts in calls_in(FOLDERS):
        owner = file.relative_to(FOLDERS).parts[0]
        if function in ("operation", "rule", "before_call"):
            assert texts[0].replace("-", "_") == owner, f"{file} registers {texts}"


def test_types_and_functions_are_in_the_folder_of_the_service_that_they_call():
    for entry in (*RESOURCE_TYPES.values(), *FUNCTIONS.values()):
        maker = entry.create if hasattr(entry, "create") else entry.answer
        owner = maker.__module__.removeprefix("hpkit_local.aws.services.").split(".")[0]
        assert owner == entry.service.replace("-", "_"), entry.token
