"""Each nightly run deploys another third of the companies, previews them without changes, and deletes them."""

import datetime
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.cli.test_validate import HPKIT
from tests.organizations.companies import companies
from tests.program.cloud import Repository

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(3600)]

NIGHT = datetime.datetime.now(datetime.UTC).toordinal() % 3
STACKS = [(name, each) for name in list(companies())[NIGHT::3] for each in companies()[name].organization.environments]
# Measured requirements of an instance and its Pulumi, with a margin.
GIB_EACH = 3


def hpkit(folder, *arguments):
    command = [HPKIT, "local", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Traceback" not in said, said
    return done.stdout


def at_once():
    """Return how many environments fit this machine's memory and cores at the same time."""
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, pages // (GIB_EACH << 30)))


def live(folder, name, environment):
    """Deploy an environment, check that a preview shows no change, and delete it."""
    company, stack = companies()[name], f"{name}-{environment}"
    shutil.rmtree(Repository(folder).folder / "stacks")
    file, instance = folder / "stacks" / f"{name}.yaml", Instance.named(stack, root=folder)
    file.parent.mkdir()
    file.write_text(company.text, encoding="utf-8")
    try:
        created = hpkit(folder, "up", "-s", stack)
        assert re.match(rf"{stack}: \d+ resources created in", created), created
        hpkit(folder, "preview", "-s", stack, "--", "--expect-no-changes")
        deleted = hpkit(folder, "down", "--yes", "-s", stack)
        assert f"{stack} and its instance are deleted" in deleted
    finally:
        control.reset(instance)


@pytest.fixture(scope="module")
def jobs(request, tmp_path_factory):
    """Start the requested environments, as many in parallel as the machine supports."""
    wanted = [item.callspec.params for item in request.session.items if item.path == request.path]
    with ThreadPoolExecutor(at_once()) as pool:
        yield {
            (parameters["name"], parameters["environment"]): pool.submit(
                live, tmp_path_factory.mktemp("organization"), parameters["name"], parameters["environment"]
            )
            for parameters in wanted
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(("name", "environment"), STACKS)
def test_an_environment_goes_up_stays_as_it_is_and_leaves_nothing(name, environment, jobs):
    jobs[name, environment].result()
