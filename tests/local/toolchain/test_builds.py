"""Builds with a real Go, from a module proxy made of files: pinned, reproducible, and continued after a kill."""

import subprocess

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import get, locate

MAIN = 'package main\n\nvar version = "none"\n\nfunc main() { println("tiny", version) }\n'


def output(path):
    return subprocess.run([path], capture_output=True, text=True, check=True, timeout=300).stderr


def test_a_tool_is_built_from_its_pinned_module_with_its_version_in_it(proxy, messages):
    proxy.publish(MAIN)
    proxy.pin()
    path = get(proxy.tool(linker=("-X main.version=v1.0.0",)), say=messages.append)
    assert output(path) == "tiny v1.0.0\n"
    assert str(cache_root()).encode() not in path.read_bytes(), "-trimpath: the same for everybody"


def test_a_module_that_is_not_what_was_pinned_is_refused(proxy, messages):
    proxy.publish(MAIN)
    proxy.pin()
    proxy.publish(MAIN.replace("none", "evil"))
    with pytest.raises(ToolError, match=r"doesn't match its pinned hash\. Check the module proxy in GOPROXY"):
        get(proxy.tool(), say=messages.append)
    assert locate(proxy.tool()).source == "missing"


def test_a_user_cannot_switch_the_verification_off_by_accident(proxy, messages, monkeypatch):
    proxy.publish(MAIN)
    proxy.pin()
    proxy.publish(MAIN.replace("none", "evil"))
    for name, value in (("GOFLAGS", "-mod=mod"), ("GOINSECURE", "*"), ("GONOSUMCHECK", "1"), ("GONOSUMDB", "*")):
        monkeypatch.setenv(name, value)
    with pytest.raises(ToolError, match="doesn't match its pinned hash"):
        get(proxy.tool(), say=messages.append)
