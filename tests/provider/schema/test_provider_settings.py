"""Settings of the provider that have another name now: the old one is read, and changes nothing by itself."""

import pytest
from pulumi.runtime.proto import provider_pb2

from provider.engine.values import to_struct
from provider.schema.package import package_schema
from provider.schema.provider_settings import RENAMED, SETTINGS
from provider.server import HyperpodServicer
from tests.provider.harness import in_process

URN = "urn:pulumi:dev::hpkit::pulumi:providers:hyperpod::default"
OLD = {"region": "us-west-2", "roomWaitSeconds": "7"}
NEW = {"region": "us-west-2", "capacityWaitSeconds": "7"}


def checked(engine, settings):
    """Return the failures and warnings of CheckConfig."""
    request = provider_pb2.CheckRequest(urn=URN, news=to_struct(settings))
    with engine.warnings() as warned:
        failures = engine.stub.CheckConfig(request).failures
    return [failure.property for failure in failures], warned


def compared(engine, old, new):
    request = provider_pb2.DiffRequest(
        urn=URN, id="p", olds=to_struct(old), news=to_struct(new), old_inputs=to_struct(old)
    )
    return engine.stub.DiffConfig(request)


def test_the_old_name_is_taken_with_one_warning():
    with in_process(**OLD) as engine:
        assert checked(engine, OLD) == (
            [],
            ["roomWaitSeconds is now called capacityWaitSeconds; rename it."],
        )
        assert checked(engine, OLD) == ([], []), "said once"
        assert checked(engine, NEW) == ([], [])


def test_a_setting_under_both_names_is_the_new_one():
    both = {**OLD, "capacityWaitSeconds": "9"}
    with in_process(**both) as engine:
        failures, (warning,) = checked(engine, both)
        assert (failures, engine.servicer.clients.ledger._patience) == ([], 9.0)
        assert "both are set and capacityWaitSeconds counts: take roomWaitSeconds out" in warning


@pytest.mark.parametrize("settings", [OLD, NEW])
def test_either_name_sets_how_long_a_quota_waits(settings):
    with in_process(**settings) as engine:
        assert engine.servicer.clients.ledger._patience == 7.0


def test_the_old_name_is_read_from_variables_too():
    servicer = HyperpodServicer()
    servicer.Configure(provider_pb2.ConfigureRequest(variables={"hyperpod:config:roomWaitSeconds": "7"}), None)
    assert servicer.clients.ledger._patience == 7.0


@pytest.mark.parametrize(("old", "new"), [(OLD, NEW), (NEW, OLD), (OLD, OLD)])
def test_another_name_alone_is_no_change_of_a_provider_in_state(old, new):
    with in_process(**old) as engine:
        answer = compared(engine, old, new)
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE
    assert (list(answer.diffs), list(answer.replaces)) == ([], [])


def test_another_name_with_another_value_is_a_mere_change_of_settings():
    with in_process(**OLD) as engine:
        answer = compared(engine, OLD, {**NEW, "capacityWaitSeconds": "9"})
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert (list(answer.diffs), list(answer.replaces)) == (["capacityWaitSeconds"], [])


def test_a_name_that_never_was_is_refused_with_those_of_today():
    with in_process(**NEW) as engine:
        assert checked(engine, {"roomWaitSecond": "7"}) == (["roomWaitSecond"], [])


def test_the_package_knows_the_new_names_only():
    offered = package_schema()["provider"]["inputProperties"].keys()
    assert set(RENAMED.values()) <= SETTINGS.keys() == offered
    assert not RENAMED.keys() & offered
