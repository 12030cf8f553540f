"""Versions as tools print them."""

import pytest

from hpkit_local.toolchain.versions import Range, Version, parse


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v3.200.0\n", "3.200.0"),
        ("go version go1.26.8 linux/amd64", "1.26.8"),
        ("go version go1.26 linux/amd64", "1.26.0"),
        ("etcd Version: 3.5.1\nGit SHA: e8732fb5f\nGo Version: go1.16.3", "3.5.1"),
        ("Kubernetes v1.34.4-eks-1a2b3c", "1.34.4"),
        ("3.200.0-alpha.1", "3.200.0"),
        ("", None),
        ("unknown command: version", None),
    ],
)
def test_the_first_version_in_what_a_tool_prints_counts(text, version):
    assert parse(text) == (version and Version(version))


@pytest.mark.parametrize(
    ("version", "fits"), [("3.199.9", False), ("3.200.0", True), ("3.999.0", True), ("4.0.0", False)]
)
def test_a_range_holds_its_least_version_but_not_its_end(version, fits):
    assert (Version(version) in Range("3.200", "4.0")) is fits


def test_a_range_says_itself_in_words():
    assert str(Range("1.26", "2.0")) == "1.26 or newer, below 2.0"
    assert str(Range("3.5.1", "4.0")) == "3.5.1 or newer, below 4.0"
