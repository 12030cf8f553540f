"""README and guides from the first line to the last, in a fresh clone and one shell, typed as they are printed.

One local cloud serves all of them. By day, the README and the page that continues its session run; for all others, only
their files and commands are checked. Nightly, all pages run.
"""

import html
import os
import shutil
import subprocess

import pytest

from hpkit_local.supervisor import control
from hpkit_local.supervisor.local_cloud import LocalCloud
from tests.aws_command import command_in
from tests.newcomer import Shell, steps_of
from tests.program.cloud import Repository
from tests.running import WITH_PULUMI, get_tools, unavailable
from tests.test_readme import BY_HAND, NEWCOMER, ROOT, SECONDS

DOCS = ROOT / "docs"
# These need an account or another tool.
ELSEWHERE = {
    "adopting",
    "aws",
    "cost",
    "closed-network",
    "delete",
    "github-actions",
    "gitlab",
    "local-cluster",
    "policies",
}
ELSEWHERE |= {"registry", "review", "scientists", "storage", "trial", "whatif"}
PAGES = sorted(
    page for kind in ("guides", "tutorials") for page in (DOCS / kind).glob("*.md") if page.stem not in ELSEWHERE
)
STEPS = {str(page.relative_to(DOCS)): steps_of(page.read_text(encoding="utf-8")) for page in PAGES}
# The page to which the README leads: it continues with the live stack handson-dev, and leaves it unchanged.
FIRST = "tutorials/first-job.md"
AT_NIGHT = sorted(name for name, steps in STEPS.items() if steps and name != FIRST)


def opening():
    """Return the README's lines up to the one that restores the shell."""
    return BY_HAND[: next(number for number, line in enumerate(BY_HAND) if "--unset" in line)]


def require_kubectl():
    if shutil.which("kubectl") is None:
        unavailable("the pages look at the cluster with kubectl, which is not here")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a clone after `make install`; old timestamps keep `make` from installing again."""
    get_tools(*WITH_PULUMI)
    folder = tmp_path_factory.mktemp("clone")
    repository = Repository(folder)
    files = ("Makefile", "requirements.lock", "pyproject.toml")
    for name in files:
        shutil.copy(ROOT / name, folder)
        os.utime(folder / name, (0, 0))
    (folder / "docs").symlink_to(DOCS)
    if not (folder / ".venv" / ".installed").exists():
        unavailable("this environment was not made by `make install`")
    git = ("git", "-c", "user.name=n", "-c", "user.email=n@example.com")
    for command in (
        ("init", "-q", "-b", "main"),
        ("add", *files, "infra", "stacks", "Pulumi.yaml"),
        ("commit", "-qm", "begin"),
    ):
        subprocess.run([*git, *command], cwd=folder, check=True)
    yield repository.folder
    for name in sorted(each.name for each in (folder / ".local").glob("*")):
        control.reset(LocalCloud.named(name, root=folder))


@pytest.fixture(scope="module")
def shell(clone, tmp_path_factory):
    path = f"{command_in(tmp_path_factory.mktemp('aws'))}:{NEWCOMER['PATH']}"
    shell = Shell(clone, {**NEWCOMER, "PATH": path}, tmp_path_factory.mktemp("typed"))
    yield shell
    shell.close()


@pytest.fixture(scope="module")
def begun(shell):
    """Return the output of each of the README's first lines."""
    outputs = {}
    for line in opening():
        if line.startswith("kubectl ") and shutil.which("kubectl") is None:
            continue
        code, outputs[line] = shell.run(line)
        assert code == 0, outputs[line]
    return outputs


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.timeout(SECONDS)
def test_make_up_ends_as_the_picture_of_the_readme_shows(begun):
    first = next(iter(begun))
    assert first.startswith("make up ")
    picture = (DOCS / "images" / "make-up.svg").read_text(encoding="utf-8")
    end = begun[first].splitlines()[-3:]
    assert [line.partition(": ")[0] for line in end] == ["Use it", "Inspect it", "Delete it"]
    assert [line for line in end if html.escape(line).replace(" ", "&#160;") not in picture] == []
    status = next(said for line, said in begun.items() if "local status" in line)
    assert any(line.startswith("handson-dev: handson-dev (") for line in status.splitlines())


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.timeout(SECONDS)
def test_the_page_that_goes_on_where_the_readme_is_says_what_happens(begun, shell):
    require_kubectl()
    for step in STEPS[FIRST]:
        shell.follow(step)


@pytest.fixture
def at_the_readme(begun, shell, clone):
    """Start where the README stops, and delete what a failed page leaves."""
    require_kubectl()
    yield
    shell.run('git checkout -q stacks; eval "$(.venv/bin/hpkit local env --name handson-dev)"')
    for folder in (clone / ".local").glob("*"):
        if folder.name != "handson-dev":
            control.reset(LocalCloud.named(folder.name, root=clone))


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.nightly
@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.parametrize("page", AT_NIGHT)
def test_a_page_says_what_happens(at_the_readme, shell, clone, page):
    for step in STEPS[page]:
        shell.follow(step)
    changed = subprocess.run(["git", "diff", "--stat"], cwd=clone, capture_output=True, text=True, check=True).stdout
    assert changed == "", f"{page} leaves its edits behind"
    assert [folder.name for folder in (clone / ".local").iterdir()] == ["handson-dev"], f"{page} leaves a cloud behind"


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.timeout(SECONDS)
def test_the_last_lines_of_the_readme_leave_nothing(begun, shell, clone):
    last = BY_HAND[len(opening()) :]
    assert last[-1].startswith("make down ")
    for line in last:
        code, said = shell.run(line)
        assert code == 0, said
    assert said.splitlines()[-1] == "handson-dev and its local cloud are deleted"
    assert shell.run("echo ${AWS_ENDPOINT_URL-nothing}") == (0, "nothing\n")
    assert list((clone / ".local").iterdir()) == []
