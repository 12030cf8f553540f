"""`hpkit job logs`, `exec` and `stop` as members of a team run them, against a real API server and operators."""

import pytest
import yaml

from hpkit.kueue.jobs import JOB_RESOURCES
from tests.cli.invoke import hpkit
from tests.program.cloud import ROOT, Live
from tests.running import eventually
from tests.security.kinds import templates_in

pytestmark = [pytest.mark.platform, pytest.mark.timeout(900)]

JOHN = "hyperpod-ns-john"


@pytest.fixture(scope="module")
def live(clouds):
    return Live(clouds.handson())


@pytest.fixture(scope="module")
def ask(live):
    """Run a command as a member of a team."""

    def run(team, *words):
        arn = f"arn:aws:iam::123456789012:role/{team}-scientists"
        keys = live.client("sts").assume_role(RoleArn=arn, RoleSessionName="ann")["Credentials"]
        variables = {
            "AWS_ENDPOINT_URL": live.url,
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        return hpkit(*words[:2], "--stack", "handson-dev", *words[2:], cwd=ROOT, **variables)

    return run


@pytest.fixture(params=("job",))
def path(request, live, ask):
    """A job with two running pods, as `hpkit job new` writes it."""
    written = ask("john", "job", "new", "--team", "john", "--kind", request.param, "--count", "2",
                  "--instance-type", "ml.g5.12xlarge")  # fmt: skip
    document = yaml.safe_load(written.stdout)
    for template in templates_in(document):
        template["metadata"].setdefault("annotations", {})["hpkit.local/run"] = "24h"
    version, plural = JOB_RESOURCES[document["kind"]]
    folder = f"/apis/{version}/namespaces/{JOHN}/{plural}"
    live.api.create(folder, document)

    def running():
        pods = live.api.items(f"/api/v1/namespaces/{JOHN}/pods")
        return [each.get("status", {}).get("phase") for each in pods] == ["Running"] * 2

    eventually(running, lambda: live.api.items(f"/api/v1/namespaces/{JOHN}/pods"))
    yield f"{folder}/train"
    live.api.delete(f"{folder}/train")
    eventually(lambda: not live.api.items(f"/api/v1/namespaces/{JOHN}/pods"), "its pods end")


def test_a_member_reads_enters_and_stops_a_job_and_other_teams_are_refused(live, ask, path, capfd):
    line = "No container runs on the local cloud: kwok simulates its pods."
    logs = ask("john", "job", "logs", "train")
    assert logs.returncode == 0, logs.stderr
    assert logs.stdout.splitlines() == [f"rank 0 | {line}", f"rank 1 | {line}"]
    assert "2 of 2 ranks running" in logs.stderr
    for verb, more in (("logs", ()), ("exec", ("--", "true")), ("stop", ("--yes",))):
        refused = ask("smith", "job", verb, "train", "--team", "john", *more)
        assert refused.returncode == 1
        assert "error: jobs of john can't be read: " in refused.stderr
        assert "cannot get resource" in refused.stderr
        unknown = ask("smith", "job", verb, "train", *more)
        assert (unknown.returncode, "smith has no job train; jobs of john couldn't be read" in unknown.stderr) == (
            2,
            True,
        )
    # The member's rights lead to the node. There, nothing runs the command.
    entered = ask("john", "job", "exec", "train", "--rank", "1", "--", "true")
    said = capfd.readouterr().err
    assert (entered.returncode, "rbidden" in said, "exec" in said) == (1, False, True), said
    stopped = ask("john", "job", "stop", "train", "--yes")
    assert stopped.returncode == 0, stopped.stderr
    assert "and its 2 pods (2 running), and nothing else" in stopped.stdout
    eventually(lambda: live.api.find(path) is None, "it's deleted")
