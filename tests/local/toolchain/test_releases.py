"""The official release comes first, if it can be downloaded and its checksum matches; otherwise the next source."""

import io
import platform
import socket
import stat
import tarfile
import threading

import pytest

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import download, get, get_all, locate
from tests.local.toolchain.conftest import a_build, a_recipe, a_tool, put_script

PROGRAM = b"#!/bin/sh\necho tiny v1.0.0\n" + b"#" * 300_000


@pytest.fixture
def built(path_folder, tmp_path):
    """Return a source that always works; the tool that it builds shows that it was used."""
    build = 'while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\necho built\\n" > "$2"; chmod +x "$2"'
    body = f'case "$1" in version) echo go1.26.8;; list) echo example.com/a;; build) {build};; esac'
    put_script(path_folder, "go", body)
    return a_build(a_recipe(tmp_path / "recipe"))


def archive(**members):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, body in members.items():
            info = tarfile.TarInfo(f"tiny/{name}")
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return content.getvalue()


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


def test_a_release_that_breaks_off_is_thrown_away_and_the_tool_built(release_host, built, messages):
    release = release_host.publish("tiny", PROGRAM)
    release_host.breaks_off.add("tiny")
    assert "built" in get(a_tool(sources=(release, built)), say=messages.append).read_text()
    assert left_over() == []
    release_host.breaks_off.clear()
    (cache_root() / "tools" / "tiny" / "1.0.0" / "bin" / "tiny").unlink()
    assert get(a_tool(sources=(release, built)), say=messages.append).read_bytes() == PROGRAM, "half a file is not kept"


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


@pytest.mark.parametrize("listed", ["{sum}", "{sum} *tiny", "{upper}  tiny", "{other}  more\n{sum}  tiny"])
def test_checksums_are_read_as_publishers_write_them(release_host, messages, listed):
    release = release_host.publish("tiny", PROGRAM)
    right = release_host.files["sums"].split()[0].decode()
    lines = listed.format(sum=right, upper=right.upper(), other="b" * 64)
    release_host.files["sums"] = lines.encode()
    assert get(a_tool(sources=(release,)), say=messages.append).read_bytes() == PROGRAM


def test_a_release_host_out_of_reach_is_said_and_the_tool_built(release_host, built, messages):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        release = release_host.release("tiny", sums=f"{address}/sums")
        assert "built" in get(a_tool(sources=(release, built)), say=messages.append).read_text()
    assert messages[0].startswith(f"tiny: no release: {address}/sums can't be reached: ")


def test_a_release_host_that_says_nothing_is_waited_for_only_a_moment(release_host, built, messages, monkeypatch):
    monkeypatch.setattr(download, "_CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        release = release_host.release("tiny", sums=f"http://127.0.0.1:{silent.getsockname()[1]}/sums")
        assert "built" in get(a_tool(sources=(release, built)), say=messages.append).read_text()
    assert "timed out" in messages[0]


def test_a_platform_without_a_release_asks_nobody(release_host, built, messages):
    release = release_host.release("tiny", platforms={"Plan9 mips": "plan9"})
    assert "built" in get(a_tool(sources=(release, built)), say=messages.append).read_text()
    assert messages[0] == f"tiny: no release: no release for {platform.system()} {platform.machine()}"
    assert release_host.asked == []


def test_a_tool_without_another_source_says_why_none_could_be_had(release_host, messages):
    with pytest.raises(ToolError, match=r"^tiny 1\.0\.0 can't be installed: http://127.*/sums answers 404$"):
        get(a_tool(sources=(release_host.release("tiny"),)), say=messages.append)
    assert locate(a_tool()).source == "missing"


def test_only_the_named_members_of_an_archive_are_unpacked(release_host, messages):
    release_host.publish("tiny.tar.gz", archive(tiny=b"one", helper=b"two", **{"../../evil": b"three"}))
    release = release_host.release("tiny.tar.gz", members=("tiny/tiny", "tiny/helper"))
    path = get(a_tool(executables=("tiny", "helper"), sources=(release,)), say=messages.append)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == {"tiny": b"one", "helper": b"two"}
    assert not list(cache_root().rglob("evil"))


def test_an_archive_without_the_member_is_no_release(release_host, built, messages):
    release_host.publish("tiny.tar.gz", archive(other=b"one"))
    release = release_host.release("tiny.tar.gz", members=("tiny/tiny",))
    assert "built" in get(a_tool(sources=(release, built)), say=messages.append).read_text()
    assert "tiny/tiny" in messages[1]


def test_two_tools_of_one_archive_download_it_once_side_by_side(release_host, messages, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    release_host.publish("both.tar.gz", archive(one=b"1" * 10_000, two=b"2"))
    gate = release_host.holds["both.tar.gz"] = threading.Event()
    tools = [
        a_tool(name, sources=(release_host.release("both.tar.gz", members=(f"tiny/{name}",)),))
        for name in ("one", "two")
    ]

    def say(line):
        messages.append(line)
        if "waiting" in line:
            gate.set()

    found = get_all(tools, say=say)
    assert [each.path.read_bytes()[:1] for each in found] == [b"1", b"2"]
    assert release_host.asked.count("both.tar.gz") == 1
    assert "download-both.tar.gz: this bootstrap is installing it; waiting for it" in messages


def test_a_long_download_says_how_far_it_is(release_host, messages, monkeypatch):
    monkeypatch.setattr(download, "EVERY_SECONDS", 0.0)
    release = release_host.publish("tiny", b"x" * 2_600_000)
    get(a_tool(sources=(release,)), say=messages.append)
    assert messages[0] == "tiny: downloading tiny (3 MB)"
    assert messages[1:3] == ["tiny: downloading tiny: 1 of 3 MB", "tiny: downloading tiny: 2 of 3 MB"]
