"""The official release comes first, if it can be downloaded and its checksum matches; otherwise the next source."""

import stat

import pytest

from hpkit.cache import cache_root
from hpkit_local.toolchain import get, locate
from tests.local.toolchain.conftest import a_build, a_recipe, a_tool, put_script

PROGRAM = b"#!/bin/sh\necho tiny v1.0.0\n" + b"#" * 300_000


@pytest.fixture
def built(path_folder, tmp_path):
    """Return a source that always works; the tool that it builds shows that it was used."""
    build = 'while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\necho built\\n" > "$2"; chmod +x "$2"'
    body = f'case "$1" in version) echo go1.26.8;; list) echo example.com/a;; build) {build};; esac'
    put_script(path_folder, "go", body)
    return a_build(a_recipe(tmp_path / "recipe"))


def left_over():
    return [path.name for path in cache_root().rglob("*") if path.name.endswith(".part") or ".staging" in path.name]


def test_a_release_with_the_right_checksum_is_taken(release_host, built, messages):
    tool = a_tool(sources=(release_host.publish("tiny", PROGRAM), built))
    path = get(tool, say=messages.append)
    assert path.read_bytes() == PROGRAM
    assert path.stat().st_mode & stat.S_IXUSR
    assert messages == ["tiny: downloading tiny (0 MB)", "tiny: 1.0.0 is in the cache"]
    assert (locate(tool).source, left_over()) == ("cache", [])


def test_a_release_whose_checksum_is_wrong_is_thrown_away_and_the_tool_built(release_host, built, messages):
    release = release_host.publish("tiny", PROGRAM)
    release_host.files["tiny"] = PROGRAM.replace(b"echo", b"evil")
    path = get(a_tool(sources=(release, built)), say=messages.append)
    assert path.read_text() == "#!/bin/sh\necho built\n"
    assert any("its publisher lists" in line and line.endswith("the file was deleted") for line in messages), messages
    assert list((cache_root() / "downloads").iterdir()) == []


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        (None, "/sums answers 404"),
        (b"", "contains no SHA-256 for tiny"),
        (b"not-a-sum  tiny\n", "contains no SHA-256 for tiny"),
        (b"%s  other\n" % (b"a" * 64), "contains no SHA-256 for tiny"),
    ],
)
def test_a_release_without_a_published_checksum_is_not_even_downloaded(release_host, built, messages, sums, reason):
    release = release_host.publish("tiny", PROGRAM)
    del release_host.files["sums"]
    if sums is not None:
        release_host.files["sums"] = sums
    assert "built" in get(a_tool(sources=(release, built)), say=messages.append).read_text()
    assert messages[0].startswith("tiny: no release: ")
    assert messages[0].endswith(reason)
    assert release_host.asked == ["sums"]
