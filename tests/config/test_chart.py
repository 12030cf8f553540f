"""A chart in the repository: its hash, and the errors if it doesn't match the file."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpkit.config.reading.chart import chart_hash, chart_problems
from hpkit.errors import InputError
from tests.builders import organization, typed

LISTING = (
    "find -L . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64"
)
names = st.text(alphabet="aZ0 .-_é", min_size=1, max_size=5).filter(lambda name: name.strip(".") != "")
trees = st.dictionaries(st.tuples(names, names), st.binary(max_size=20), min_size=1, max_size=6)


def write(folder, tree):
    for (parent, name), content in tree:
        # The prefix prevents folders that are named like a file or .git.
        (folder / f"d{parent}").mkdir(parents=True, exist_ok=True)
        (folder / f"d{parent}" / f"f{name}").write_bytes(content)
    return folder


def chart(root, name="chart"):
    folder = root / name
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("name: x\nversion: 0.1.0\n")
    (folder / "templates" / "a.yaml").write_text("kind: ConfigMap\n")
    return folder


def said(root, **dependencies):
    data = organization()
    data["environments"]["dev"]["cluster"]["dependencies"] = {"version": "0.1.0", **dependencies}
    return [(problem.rule, problem.message) for problem in chart_problems(root, typed(data))]


@settings(max_examples=40, deadline=None)
@given(trees, st.randoms(use_true_random=False))
def test_the_order_in_which_files_were_written_is_not_in_the_hash(tmp_path_factory, tree, random):
    items = list(tree.items())
    one = write(tmp_path_factory.mktemp("one"), items)
    random.shuffle(items)
    two = write(tmp_path_factory.mktemp("two"), items)
    assert chart_hash(one) == chart_hash(two)


@settings(max_examples=40, deadline=None)
@given(trees, st.data())
def test_a_byte_more_in_any_file_is_another_hash(tmp_path_factory, tree, data):
    folder = write(tmp_path_factory.mktemp("chart"), tree.items())
    before = chart_hash(folder)
    file = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file())))
    file.write_bytes(file.read_bytes() + b"x")
    assert chart_hash(folder) != before


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="coreutils are not here")
def test_the_hash_is_what_the_documented_command_prints(tmp_path):
    folder = write(tmp_path, {("a", "b c"): b"1", ("é", "z"): b"2", ("-", "."): b""}.items())
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".helmignore").write_text("*.md\n")
    (folder / "link.yaml").symlink_to(next(path for path in folder.rglob("fz")))
    printed = subprocess.run(["sh", "-c", LISTING], cwd=folder, capture_output=True, text=True, timeout=300, check=True)
    assert chart_hash(folder) == printed.stdout.strip()


def test_git_at_the_top_of_a_chart_is_not_in_the_hash_and_elsewhere_it_is(tmp_path):
    folder = chart(tmp_path)
    before = chart_hash(folder)
    (folder / ".git").write_text("gitdir: elsewhere\n")
    assert chart_hash(folder) == before
    (folder / "templates" / ".git").write_text("kind: Secret\n")
    assert chart_hash(folder) != before


@pytest.mark.parametrize("target", ["../../secret", "/etc/hostname", "../.git/config", "../../chart-of-another"])
def test_a_link_that_leaves_the_chart_is_refused(tmp_path, target):
    folder = chart(tmp_path)
    (tmp_path / "secret").write_text("s")
    (folder / "templates" / "out.yaml").symlink_to(target)
    with pytest.raises(InputError, match="leads out of the chart"):
        chart_hash(folder)


@pytest.mark.parametrize("target", [".", "../templates"])
def test_a_link_to_a_folder_is_refused_so_that_it_cannot_loop(tmp_path, target):
    folder = chart(tmp_path)
    (folder / "templates" / "again").symlink_to(target)
    with pytest.raises(InputError, match="a link to a folder"):
        chart_hash(folder)


def test_what_is_neither_file_nor_folder_is_refused_and_never_read(tmp_path):
    folder = chart(tmp_path)
    os.mkfifo(folder / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        chart_hash(folder)


def test_a_name_that_could_pass_for_two_lines_is_refused(tmp_path):
    folder = chart(tmp_path)
    (folder / "a\nb").write_text("")
    with pytest.raises(InputError, match="line break"):
        chart_hash(folder)


def test_the_chart_that_the_file_names_has_no_problem(tmp_path):
    folder = chart(tmp_path)
    assert said(tmp_path, chart="chart", sha256=chart_hash(folder)) == []
    assert said(tmp_path, chart="oci://registry.example/chart") == []
    packed = tmp_path / "chart.tgz"
    packed.write_bytes(b"packed")
    assert said(tmp_path, chart="chart.tgz", sha256=chart_hash(packed)) == []


def test_a_chart_that_differs_is_said_with_both_hashes(tmp_path):
    folder = chart(tmp_path)
    ((rule, message),) = said(tmp_path, chart="chart", sha256="0" * 64)
    assert rule == "CLU011"
    assert "0" * 64 in message
    assert chart_hash(folder) in message


@pytest.mark.parametrize("name", ["gone", "templates-only", "/etc", "../chart", "a\0b", "broken", "out"])
def test_a_chart_that_is_not_there_or_cannot_be_read_is_said(tmp_path, name):
    root = tmp_path / "repository"
    broken = chart(root, "broken")
    (broken / "loop").symlink_to("loop")
    (root / "templates-only").mkdir()
    chart(tmp_path)
    (root / "out").symlink_to(tmp_path / "chart")
    assert [rule for rule, _ in said(root, chart=name, sha256="0" * 64)] == ["CLU011"]
