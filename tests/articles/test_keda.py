"""KEDA's samples on a real API server with KEDA's CRDs, whose schemas contain what its operator reads.

The nightly run tests that its operator scales by a source's values (docs/guides/contributing.md).
"""

from pathlib import Path

import pytest
import yaml

from hpkit.catalog import keda_chart
from hpkit_local.kubernetes.api import RefusedError
from hpkit_local.kubernetes.crds import crds_in
from hpkit_local.toolchain.table import tool_named
from tests.running import eventually, get_tools
from tests.security.members import member, refused

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KEDA = "/apis/keda.sh/v1alpha1"
# A field that the CRD doesn't define is an error here; otherwise, it would be dropped silently.
STRICT = "?fieldValidation=Strict"


@pytest.fixture(scope="module")
def kinds(api, make):
    (found,) = get_tools("keda-crds")
    for crd in crds_in(found.path):
        make(CRDS, crd)
    eventually(lambda: answers(api, f"{KEDA}/scaledobjects"), "its kinds are served")


def answers(api, path):
    try:
        return api.read(path) is not None
    except RefusedError:
        return False


def sample(name):
    (document,) = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text().replace("-ns-serving", "-ns-john"))
    return document


def test_the_kinds_are_of_the_version_that_is_installed():
    assert tool_named("keda-crds").version == keda_chart().version


@pytest.mark.parametrize("name", ["keda-cloudwatch", "keda-prometheus", "keda-sqs"])
def test_a_member_scales_by_each_source_in_the_teams_own_namespace_alone(instance, api, kinds, name):
    john, smith = (member(instance, team) for team in ("john", "smith"))
    document, folder = sample(name), f"{KEDA}/namespaces/hyperpod-ns-john/scaledobjects"
    assert "cannot create" in refused(smith.create, f"{folder}{STRICT}", document)
    john.create(f"{folder}{STRICT}", document)
    there = api.read(f"{folder}/{document['metadata']['name']}")
    assert there["spec"] == document["spec"], "all of it is what the kind has"
    misspelt = {**document, "metadata": {"name": "wrong"}, "spec": {**document["spec"], "maxReplicas": 8}}
    assert "maxReplicas" in refused(john.create, f"{folder}{STRICT}", misspelt)
    john.delete(f"{folder}/{document['metadata']['name']}")


def test_how_keda_asks_aws_is_an_administrators_to_say(instance, api, kinds):
    document, folder = sample("keda-authentication"), f"{KEDA}/clustertriggerauthentications"
    assert "cannot create" in refused(member(instance, "john").create, f"{folder}{STRICT}", document)
    assert api.create(f"{folder}{STRICT}", document)["spec"] == document["spec"]
    api.delete(f"{folder}/{document['metadata']['name']}")
