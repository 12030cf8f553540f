"""Progress of Pulumi is read from its event log during the run: with the real engine, and with single events."""

import json
import os
import sys
from pathlib import Path

import pytest

from hpkit_local.supervisor.pulumi_run import EngineEvents, run
from hpkit_local.toolchain import search_path
from tests.running import tools_required

PROGRAM = """
import signal, sys, pulumi

# As hpkit's own program: the engine interrupts one whose run has failed.
signal.signal(signal.SIGINT, signal.SIG_DFL)

class Network(pulumi.ComponentResource):
    def __init__(self):
        super().__init__("hpkit:index:Network", "network")

network = Network()
pulumi.log.warn("of the program")
pulumi.log.warn("of the program")
pulumi.log.warn("of a part", network)
print("for its log alone")
print("a traceback", file=sys.stderr)
# The SDK sends a resource's warning once its URN is known, and doesn't wait for it when the program ends.
network.urn.apply(lambda _: pulumi.StackReference("missing"))
"""
URN = "urn:pulumi:acme-dev::hpkit::hpkit:index:Network${type}::{name}"
VPC = "aws:ec2/vpc:Vpc"


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_run_of_the_real_engine_is_read_while_it_works(tmp_path):
    with tools_required():
        path = search_path("pulumi", "pulumi-language-python")
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\nruntime: python\nmain: program\n")
    for folder in ("program", "state", "home"):
        (tmp_path / folder).mkdir()
    (tmp_path / "program" / "__main__.py").write_text(PROGRAM)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), path]),
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": (tmp_path / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "local",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DEBUG_COMMANDS": "true",
    }
    events, log = EngineEvents(tmp_path / "events.json"), tmp_path / "pulumi.log"
    read = []

    def watch(_interrupted):
        events.read()
        read.append(len(events.warnings))

    command = ["pulumi", "stack", "init", "acme-dev", "--non-interactive"]
    assert run(command, tmp_path, environment, stop_reason=str, log=log).code == 0
    command = ["pulumi", "up", "--yes", "--skip-preview", "--stack", "acme-dev", "--non-interactive"]
    logged = [*command, "--event-log", str(events.file)]
    ended = run(logged, tmp_path, environment, stop_reason=str, log=log, watch=watch)
    events.read()
    assert ended.code != 0
    assert events.warnings[-2:] == ["of the program", "Network network: of a part"], "each once"
    assert events.said()[:2] == ["a traceback", 'StackReference missing: unknown stack "missing"']
    assert not events.done, "a component and a provider are nothing that Pulumi makes"
    assert (events.under_way, events.seconds is not None) == ({}, True)
    assert len(read) > 1
    assert "for its log alone" in log.read_text()
    command = ["pulumi", "destroy", "--yes", "--skip-preview", "--stack", "acme-dev", "--non-interactive"]
    ending = EngineEvents(tmp_path / "destroy.json")
    ended = run([*command, "--event-log", str(ending.file)], tmp_path, environment, stop_reason=str, log=log)
    ending.read()
    assert (ended.code, ending.said(), ending.seconds is not None) == (0, [], True)


def event(kind, operation, name, resource_type=VPC):
    urn = URN.format(type=resource_type, name=name)
    return json.dumps({kind: {"metadata": {"op": operation, "urn": urn, "type": resource_type}}}) + "\n"


def test_what_is_made_is_counted_and_what_is_worked_on_is_named(tmp_path):
    events = EngineEvents(tmp_path / "events.json")
    events.read()
    with events.file.open("w") as log:
        for name in ("one", "two", "three"):
            log.write(event("resourcePreEvent", "create", name))
        log.write(event("resourcePreEvent", "same", "kept"))
        log.write(event("resOutputsEvent", "create", "one"))
        log.write(event("resOutputsEvent", "same", "kept"))
        log.write(event("resOpFailedEvent", "create", "two"))
        log.write(event("resourcePreEvent", "delete", "four")[:20])
        log.flush()
        events.read()
        assert events.done == {"created": 1, "unchanged": 1}
        assert [(work.verb, work.resource) for work in events.under_way.values()] == [("creating", "Vpc three")]
        log.write(event("resourcePreEvent", "delete", "four")[20:])
    events.read()
    assert [work.verb for work in events.under_way.values()] == ["creating", "deleting"], "a line that was cut is whole"


def test_a_value_that_is_not_known_yet_is_called_so(tmp_path):
    events = EngineEvents(tmp_path / "events.json", is_preview=True)
    sides = {"old": {"inputs": {"id": "vpc-1"}}, "new": {"inputs": {"id": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"}}}
    change = {"op": "update", "urn": URN.format(type=VPC, name="one"), "type": VPC, "detailedDiff": {"id": {}}, **sides}
    events.file.write_text(json.dumps({"resOutputsEvent": {"metadata": change}}) + "\n")
    events.read()
    assert events.changes[0].properties == ("id vpc-1 → not known yet",)


def test_an_error_of_a_plugin_has_no_words_of_grpc(tmp_path):
    events = EngineEvents(tmp_path / "events.json")
    urn = URN.format(type="pulumi:providers:hyperpod", name="hyperpod")
    message = "<{%reset%}>rpc error: code = Unknown desc = region: a → b would REPLACE all<{%reset%}>"
    events.file.write_text(
        json.dumps({"diagnosticEvent": {"urn": urn, "message": message, "severity": "error"}}) + "\n"
    )
    events.read()
    (error,) = events.errors
    assert error.endswith(": region: a → b would REPLACE all")
    assert "rpc" not in error


def test_a_mandatory_policy_is_an_error_and_an_advisory_one_a_warning(tmp_path):
    events = EngineEvents(tmp_path / "events.json")
    levels = {"mandatory": "errors", "advisory": "warnings"}
    lines = [
        json.dumps({"policyEvent": {"policyName": "quota", "message": "<{%red%}>too much", "enforcementLevel": level}})
        for level in levels
    ]
    events.file.write_text("\n".join(lines) + "\n")
    events.read()
    assert (events.errors, events.warnings) == (["quota: too much"], ["quota: too much"])
    events.errors.append("Resource monitor has terminated, shutting down")
    assert events.said() == ["quota: too much"], "an error that only follows from another one is omitted"


def test_the_preview_of_another_run_is_not_counted(tmp_path):
    prelude, summary = (
        json.dumps(each) + "\n" for each in ({"preludeEvent": {}}, {"summaryEvent": {"durationSeconds": 2}})
    )
    created = json.loads(event("resOutputsEvent", "create", "one"))
    planned = json.loads(event("resOutputsEvent", "create", "one"))
    planned["resOutputsEvent"]["planning"] = True
    failure = json.dumps({"diagnosticEvent": {"message": "odd", "severity": "info#err"}}) + "\n"
    phase = prelude + failure + json.dumps(planned) + "\n" + summary
    for is_preview in (True, False):
        events = EngineEvents(tmp_path / "events.json", is_preview=is_preview)
        events.file.write_text(phase)
        events.read()
        assert (events.done, events.seconds) == ({"created": 1} if is_preview else {}, 2)
    events.file.write_text(prelude)
    events.read()
    assert events.seconds is None, "the next phase has begun"
    events.file.write_text(prelude + failure + json.dumps(created) + "\n" + summary)
    events.read()
    assert (events.done, events.seconds, events.said()) == ({"created": 1}, 4, ["odd"])
