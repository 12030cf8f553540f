"""At night every third company goes up, previews as unchanged, and leaves nothing; each environment has a cloud."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from hpkit_local.aws.testing import client
from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.cli.test_validate import HPKIT
from tests.organizations.companies import companies
from tests.program.cloud import Repository

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(3600)]

STACKS = [(name, each) for name in list(companies())[::3] for each in companies()[name].organization.environments]
# What an instance and the Pulumi that works on it take, measured, with some room.
GIB_EACH = 3


def hpkit(folder, *arguments):
    command = [HPKIT, "local", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Traceback" not in said, said
    return done.stdout


def at_once():
    """Return how many environments this machine's memory and cores carry side by side."""
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, pages // (GIB_EACH << 30)))


def lay_network(instance, text, spec):
    """Make the VPC that an environment names, and return the file with the ids that the cloud gave it."""
    ec2 = client(f"http://127.0.0.1:{instance.ports()['aws']}", "ec2", region=spec.region)
    existing = spec.network.existing
    vpc = ec2.create_vpc(CidrBlock="10.10.0.0/16")["Vpc"]["VpcId"]
    given = {existing.vpc_id: vpc}
    for number, (zone, subnet) in enumerate(existing.subnets.items()):
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.10.{number * 64}.0/18", AvailabilityZone=zone)
        given[subnet] = made["Subnet"]["SubnetId"]
    for name in existing.security_group_ids:
        group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
        own = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=own)
        given[name] = group
    return re.sub("|".join(given), lambda match: given[match[0]], text)


def live(folder, name, environment):
    """Take one environment up, look whether a preview would change anything, and take it down."""
    company, stack = companies()[name], f"{name}-{environment}"
    spec = company.organization.environments[environment]
    shutil.rmtree(Repository(folder).folder / "stacks")
    file, instance = folder / "stacks" / f"{name}.yaml", Instance.named(stack, root=folder)
    file.parent.mkdir()
    file.write_text(company.text, encoding="utf-8")
    try:
        if spec.network.existing:
            hpkit(folder, "start", "--name", stack, "--account", spec.account)
            file.write_text(lay_network(instance, company.text, spec), encoding="utf-8")
        created = hpkit(folder, "up", "-s", stack)
        assert re.match(rf"{stack}: \d+ resources created in", created), created
        hpkit(folder, "preview", "-s", stack, "--", "--expect-no-changes")
        deleted = hpkit(folder, "down", "--yes", "-s", stack)
        assert f"{stack} and its instance are deleted" in deleted
    finally:
        control.reset(instance)


@pytest.fixture(scope="module")
def jobs(request, tmp_path_factory):
    """Begin the life of each environment that a test asks for, as many side by side as the machine carries."""
    wanted = [item.callspec.params for item in request.session.items if item.path == request.path]
    with ThreadPoolExecutor(at_once()) as pool:
        yield {
            (each["name"], each["environment"]): pool.submit(
                live, tmp_path_factory.mktemp("organization"), each["name"], each["environment"]
            )
            for each in wanted
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(("name", "environment"), STACKS)
def test_an_environment_goes_up_stays_as_it_is_and_leaves_nothing(name, environment, jobs):
    jobs[name, environment].result()
