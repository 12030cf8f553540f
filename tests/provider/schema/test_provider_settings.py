"""Provider settings: known ones are accepted, others are rejected."""

from pulumi.runtime.proto import provider_pb2

from hpkit_provider.engine.values import to_struct
from hpkit_provider.schema.package import SETTINGS, package_schema
from hpkit_provider.server import HyperpodServicer
from tests.provider.harness import in_process

URN = "urn:pulumi:dev::hpkit::pulumi:providers:hyperpod::default"
WAITS = {"region": "us-west-2", "capacityWaitSeconds": "7"}


def refused(engine, settings):
    """Return the settings that CheckConfig rejects."""
    request = provider_pb2.CheckRequest(urn=URN, news=to_struct(settings))
    return [failure.property for failure in engine.stub.CheckConfig(request).failures]


def compared(engine, old, new):
    request = provider_pb2.DiffRequest(
        urn=URN, id="p", olds=to_struct(old), news=to_struct(new), old_inputs=to_struct(old)
    )
    return engine.stub.DiffConfig(request)


def test_a_setting_says_how_long_a_quota_waits():
    with in_process(**WAITS) as engine:
        assert engine.servicer.clients.capacity_wait == 7.0
    servicer = HyperpodServicer()
    servicer.Configure(provider_pb2.ConfigureRequest(variables={"hyperpod:config:capacityWaitSeconds": "8"}), None)
    assert servicer.clients.capacity_wait == 8.0


def test_another_value_is_a_mere_change_of_settings():
    with in_process(**WAITS) as engine:
        answer = compared(engine, WAITS, {**WAITS, "capacityWaitSeconds": "9"})
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert (list(answer.diffs), list(answer.replaces)) == (["capacityWaitSeconds"], [])


def test_a_setting_that_does_not_exist_is_refused():
    with in_process(**WAITS) as engine:
        assert refused(engine, {**WAITS, "capacityWaitSecond": "7"}) == ["capacityWaitSecond"]
        assert refused(engine, WAITS) == []


def test_the_package_offers_all_settings():
    assert package_schema()["provider"]["inputProperties"].keys() == SETTINGS.keys()
