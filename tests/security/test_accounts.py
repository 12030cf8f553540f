"""With credentials of another account, the plugin changes nothing, and reads nothing into the state."""

import pulumi
import pytest

from hpkit.clients.calls import Responses
from hpkit.plan.derive import derive
from hpkit.preflight.account import check_account
from hpkit.preflight.calls import CALLER
from hpkit.program.recording import Answers, record
from hpkit_provider.aws.client import settings_from
from tests import builders
from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.harness import CREDENTIALS, FailedError, World, in_process

OURS, THEIRS = "123456789012", "210987654321"


def plan_of(account=OURS):
    return derive(builders.typed(builders.organization(environment={"account": account})), "dev")


def test_credentials_of_another_account_create_nothing():
    with pytest.raises(pulumi.RunError) as refused:
        record(plan_of(), Answers(account=THEIRS))
    assert f"credentials belong to account {THEIRS}" in str(refused.value)
    assert f"acme-dev belongs to account {OURS}" in str(refused.value)


def test_credentials_of_another_account_destroy_or_refresh_nothing():
    found = record(plan_of())
    assert found.one("pulumi:providers:aws").inputs["allowedAccountIds"] == f'["{OURS}"]'
    assert found.one("pulumi:providers:hyperpod").inputs["accountId"] == OURS


def test_a_file_without_an_account_accepts_any():
    assert record(plan_of(None), Answers(account=THEIRS)).resources
    inputs = record(plan_of(None)).one("pulumi:providers:aws").inputs
    assert "allowedAccountIds" not in inputs


@pytest.fixture
def live(monkeypatch):
    """Return a cluster that the plugin created with the right credentials, and the engine's state."""
    for name, value in {**CREDENTIALS, "MOTO_IAM_LOAD_MANAGED_POLICIES": "false"}.items():
        monkeypatch.setenv(name, value)
    with running_endpoint() as endpoint:
        world = World(Cloud(endpoint))
        with in_process(**world.settings, accountId=OURS) as engine:
            engine.up("Cluster", "c", world.cluster())
            yield world, engine.state


@pytest.mark.parametrize("operation", ["refresh", "delete", "create"])
def test_the_plugin_keeps_the_state_and_changes_nothing_in_another_account(live, operation):
    world, state = live
    with in_process(**world.settings, accountId=THEIRS) as stranger:
        stranger.state = dict(state)
        change = {
            "refresh": lambda: stranger.refresh("Cluster", "c"),
            "delete": lambda: stranger.delete("Cluster", "c"),
            "create": lambda: stranger.up("Cluster", "other", world.cluster()),
        }[operation]
        with pytest.raises(FailedError) as refused:
            change()
        assert f"belong to account {OURS}, but this stack belongs to account {THEIRS}" in str(refused.value)
        assert "Nothing was read or changed" in str(refused.value)
        assert stranger.state == state
    assert len(world.sm.list_clusters()["ClusterSummaries"]) == 1


def test_the_account_check_uses_the_endpoint_of_the_calls():
    assert settings_from({"endpoint": "http://127.0.0.1:1"}, {}).sts_endpoint == "http://127.0.0.1:1"
    private = "https://vpce-1.api.sagemaker.us-west-2.vpce.amazonaws.com"
    assert settings_from({"endpoint": private}, {}).sts_endpoint is None
    stack = '{"aws:endpoints": "[{\\"sts\\": \\"http://127.0.0.1:2\\"}]"}'
    assert settings_from({}, {"PULUMI_CONFIG": stack}).sts_endpoint == "http://127.0.0.1:2"


@pytest.mark.parametrize(("account", "status"), [(OURS, "ok"), (THEIRS, "missing"), (None, "ok")])
def test_preflight_names_both_accounts(account, status):
    caller = {"Account": OURS, "Arn": f"arn:aws:iam::{OURS}:role/x"}
    identity = next(check_account(plan_of(account), Responses({CALLER.key: caller})))
    assert (identity.what, identity.status) == ("identity", status)
    assert OURS in identity.found
    assert account is None or account in identity.needed
