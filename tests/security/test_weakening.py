"""A user with permissions in the cluster silently removes the teams' limits."""

import copy
import re

import pytest
import yaml

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.admission import check_admission
from hpkit.preflight.calls import ADMISSION
from hpkit.program.recording import record
from tests import builders
from tests.security.test_pipelines import ROOT

POLICIES, BINDINGS, NAMESPACES = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Namespace"
NAMESPACE = "hyperpod-ns-vision"


@pytest.fixture(scope="module")
def recording():
    rows = {"vision": [{"instanceType": "ml.g5.12xlarge", "count": 2}]}
    members = ["arn:aws:iam::123456789012:role/vision"]
    data = builders.organization(teams=[builders.team("vision", members=members)], allocations=rows)
    return record(derive(builders.typed(data), "dev"))


@pytest.fixture
def live(recording):
    """Return the API server's objects after an `up`: with its defaults, and with objects of others."""
    objects = {POLICIES: {"of-somebody": {}}, BINDINGS: {"of-somebody": {}}, NAMESPACES: {"default": {}}}
    for resource in recording.resources.values():
        kind = resource.type.rpartition(":")[2].removesuffix("Patch")
        if kind in objects:
            metadata = resource.inputs["metadata"]
            spec = resource.inputs.get("spec") or {
                **metadata["labels"],
                "kubernetes.io/metadata.name": metadata["name"],
            }
            objects[kind][metadata["name"]] = copy.deepcopy(spec)
    for spec in objects[POLICIES].values():
        matches = spec.get("matchConstraints", {})
        matches |= {"matchPolicy": "Equivalent", "objectSelector": {}}
        for rule in matches.get("resourceRules", ()):
            rule["scope"] = "*"
    return objects


def told(recording, live):
    results = list(check_admission(recording, Responses({ADMISSION.key: live})))
    return {each.what: (each.found, each.needed) for each in results if each.status == "changed"}, results


def test_preflight_accepts_unchanged_admission_policies(recording, live):
    said, results = told(recording, live)
    assert said == {}
    assert [each.status for each in results] == ["ok"]


WEAKER = {
    "a binding that only warns": (
        lambda live: live[BINDINGS]["hpkit-team-jobs"].update(validationActions=["Warn"]),
        {f"{BINDINGS} hpkit-team-jobs": ("validationActions: Warn", "validationActions: Deny")},
    ),
    "a binding that only writes a log": (
        lambda live: live[BINDINGS]["hpkit-team-jobs"].update(validationActions=["Audit", "Warn"]),
        {f"{BINDINGS} hpkit-team-jobs": ("validationActions: Audit, Warn", "validationActions: Deny")},
    ),
    "a binding of no namespace": (
        lambda live: live[BINDINGS]["hpkit-team-jobs"].update(
            matchResources={"namespaceSelector": {"matchLabels": {"no": "where"}}}
        ),
        {f"{BINDINGS} hpkit-team-jobs": ("matchResources: another", "matchResources: none")},
    ),
    "no binding": (
        lambda live: live[BINDINGS].pop("hpkit-member-work"),
        {f"{BINDINGS} hpkit-member-work": ("missing", "in force")},
    ),
    "no policy": (
        lambda live: live[POLICIES].pop("hpkit-team-pods"),
        {f"{POLICIES} hpkit-team-pods": ("missing", "in force")},
    ),
    "a policy that lets through what it cannot judge": (
        lambda live: live[POLICIES]["hpkit-team-pods"].update(failurePolicy="Ignore"),
        {f"{POLICIES} hpkit-team-pods": ("failurePolicy: Ignore", "failurePolicy: Fail")},
    ),
    "a policy with an exception": (
        lambda live: live[POLICIES]["hpkit-team-pods"].update(
            matchConditions=[{"name": "mine", "expression": "request.userInfo.username != 'ann'"}]
        ),
        {f"{POLICIES} hpkit-team-pods": ("matchConditions: another", "matchConditions: none")},
    ),
    "a policy of no objects": (
        lambda live: live[POLICIES]["hpkit-team-pods"]["matchConstraints"].update(
            objectSelector={"matchLabels": {"a": "b"}}
        ),
        {f"{POLICIES} hpkit-team-pods": ("matchConstraints: another", "matchConstraints: another")},
    ),
    "a rule that always holds": (
        lambda live: live[POLICIES]["hpkit-team-pods"]["validations"][0].update(expression="true"),
        {f"{POLICIES} hpkit-team-pods": ("validations: another", "validations: another")},
    ),
    "a namespace of a lower level": (
        lambda live: live[NAMESPACES][NAMESPACE].update({"pod-security.kubernetes.io/enforce": "privileged"}),
        {
            f"{NAMESPACES} {NAMESPACE}": (
                "pod-security.kubernetes.io/enforce: privileged",
                "pod-security.kubernetes.io/enforce: baseline",
            )
        },
    ),
    "a namespace without a level": (
        lambda live: live[NAMESPACES][NAMESPACE].pop("pod-security.kubernetes.io/enforce"),
        {
            f"{NAMESPACES} {NAMESPACE}": (
                "pod-security.kubernetes.io/enforce: none",
                "pod-security.kubernetes.io/enforce: baseline",
            )
        },
    ),
}


@pytest.mark.parametrize(("weaken", "expected"), WEAKER.values(), ids=WEAKER)
def test_preflight_reports_each_weakened_admission_policy(recording, live, weaken, expected):
    weaken(live)
    said, results = told(recording, live)
    assert said == expected
    assert all("pulumi up --refresh --stack acme-dev" in each.fix for each in results)


def test_preflight_is_silent_without_a_platform_and_reports_refused_reads(recording, live):
    live[NAMESPACES] = {"default": {}}
    assert told(recording, live) == ({}, [])
    assert list(check_admission(recording, Responses({}))) == []
    refused = FailedCall("kubernetes:get", "403 Forbidden", "the API server rejects this identity")
    (row,) = check_admission(recording, Responses({ADMISSION.key: refused}))
    assert (row.status, row.area) == ("unknown", "kubernetes")


def test_every_preview_and_up_of_the_pipelines_refreshes():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "deploy.yml").read_text())["jobs"]
    page = (ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml").read_text(encoding="utf-8")
    scripts = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    commands = re.findall(r"pulumi (?:preview|up) --.*", "\n".join([*scripts, page]))
    assert len(commands) >= 8
    assert [each for each in commands if "--refresh" not in each] == []
