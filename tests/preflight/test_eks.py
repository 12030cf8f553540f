"""EKS's offers and the contents of an existing cluster, evaluated from responses."""

from datetime import UTC, datetime

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.calls import (
    CLUSTERS,
    KUBERNETES,
    KUBERNETES_VERSIONS,
    access_entry,
    addon_versions,
    eks_addon,
    eks_cluster,
    further_calls,
    role,
)
from hpkit.preflight.eks import check_eks
from tests.builders import group, organization, team, typed

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
ABSENT = FailedCall("eks:DescribeAddon", "ResourceNotFoundException", "No addon")
DENIED = FailedCall("eks:DescribeAddon", "AccessDeniedException", "not allowed")


def plan_of(**environment):
    return derive(typed(organization(environment=environment)), "dev")


EXISTING = plan_of(eks={"version": "1.35", "existing": {"name": "kube"}})


def rows_of(plan, given):
    return {row.what: row for row in check_eks(plan, Responses(given))}


def offered(**statuses):
    versions = [{"clusterVersion": f"1.{minor[1:]}", "versionStatus": status} for minor, status in statuses.items()]
    return {KUBERNETES_VERSIONS.key: {"clusterVersions": versions}}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (offered(v35="STANDARD_SUPPORT"), "ok"),
        (offered(v34="STANDARD_SUPPORT", v35="EXTENDED_SUPPORT"), "missing"),
        (offered(v34="STANDARD_SUPPORT", v35="UNSUPPORTED"), "missing"),
        (offered(v34="STANDARD_SUPPORT", v36="STANDARD_SUPPORT"), "missing"),
        ({KUBERNETES_VERSIONS.key: DENIED}, "unknown"),
    ],
)
def test_a_kubernetes_version_needs_support(given, status):
    assert rows_of(plan_of(), given)["Kubernetes 1.35"].status == status


def test_extended_support_is_enough_where_it_is_asked_for():
    plan = plan_of(eks={"version": "1.35", "supportType": "EXTENDED"})
    row = rows_of(plan, offered(v35="EXTENDED_SUPPORT", v36="STANDARD_SUPPORT"))["Kubernetes 1.35"]
    assert (row.status, row.found) == ("ok", "extended support")


def test_a_cluster_that_is_there_may_have_extended_support_already():
    row = rows_of(EXISTING, offered(v35="EXTENDED_SUPPORT"))["Kubernetes 1.35"]
    assert row.status == "ok"


def test_the_remedy_names_versions_that_hyperpod_offers_too():
    fix = rows_of(plan_of(), offered(v34="STANDARD_SUPPORT", v36="STANDARD_SUPPORT"))["Kubernetes 1.35"].fix
    assert fix.endswith(": 1.34"), "HyperPod has no 1.36"


def test_add_ons_that_eks_lists_for_a_version_prove_that_it_is_offered():
    plan = plan_of()
    listed = {"addons": [{"addonName": "vpc-cni", "addonVersions": [{"addonVersion": "v1"}]}]}
    given = {KUBERNETES_VERSIONS.key: DENIED, addon_versions(plan).key: listed}
    assert rows_of(plan, given)["Kubernetes 1.35"].status == "ok"


def test_an_add_on_without_a_pin_shows_the_default_that_eks_takes():
    plan = plan_of()
    fits = [{"clusterVersion": "1.35", "defaultVersion": True}]
    versions = [{"addonVersion": "v2"}, {"addonVersion": "v1", "compatibilities": fits}]
    given = {addon_versions(plan).key: {"addons": [{"addonName": "vpc-cni", "addonVersions": versions}]}}
    assert rows_of(plan, given)["add-on vpc-cni"].found == "v1"


@pytest.mark.parametrize(
    ("response", "status"),
    [({"addon": {"addonVersion": "v1.18.2-eksbuild.2"}}, "ok"), (ABSENT, "unknown"), (DENIED, "unknown")],
)
def test_an_existing_cluster_is_asked_for_what_an_add_on_needs(response, status):
    operator = {"amazon-sagemaker-hyperpod-training-operator": {}}
    plan = plan_of(eks={"version": "1.35", "existing": {"name": "kube"}}, addons=operator)
    found = {"cluster": {"name": "kube", "status": "ACTIVE", "version": "1.35"}}
    given = {eks_cluster(plan).key: found, eks_addon(plan, "cert-manager").key: response}
    asked = {call.key for call in further_calls(plan, Responses({CLUSTERS.key: {"ClusterSummaries": []}, **given}))}
    assert eks_addon(plan, "cert-manager").key in asked
    what = "cert-manager on kube, which amazon-sagemaker-hyperpod-training-operator requires"
    assert rows_of(plan, given)[what].status == status


def kueue(addon, inside):
    found = {"cluster": {"name": "kube", "status": "ACTIVE", "version": "1.35"}}
    given = {eks_cluster(EXISTING).key: found, eks_addon(EXISTING, GOVERNANCE).key: addon, KUBERNETES.key: inside}
    return rows_of(EXISTING, given)["Kueue on the EKS cluster"]


def test_a_cluster_without_any_kueue_is_ok():
    assert kueue(ABSENT, {"apiGroups": [], "deployments": []}).status == "ok"


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ({"apiGroups": ["kueue.x-k8s.io"], "deployments": []}, "the API kueue.x-k8s.io"),
        ({"apiGroups": [], "deployments": ["kueue"]}, "deployment kueue-system/kueue"),
    ],
)
def test_a_kueue_that_no_add_on_brought_is_in_the_way(inside, found):
    row = kueue(ABSENT, inside)
    assert (row.status, row.found) == ("missing", found)


def test_a_cluster_that_cannot_be_looked_into_is_unknown():
    assert kueue(ABSENT, FailedCall("kubernetes:get", "401 Unauthorized", "refused")).status == "unknown"
    assert kueue(DENIED, {"apiGroups": [], "deployments": []}).status == "unknown"


@pytest.mark.parametrize(
    ("mode", "inside", "status"),
    [
        ({}, {"apiGroups": [], "deployments": [], "nodes": ["ip-10-0-0-1"]}, "ok"),
        ({}, {"apiGroups": [], "deployments": [], "nodes": []}, "missing"),
        ({}, FailedCall("kubernetes:get", "401 Unauthorized", "refused"), "unknown"),
        ({"computeConfig": {"enabled": True}}, {"apiGroups": [], "deployments": [], "nodes": []}, "ok"),
    ],
)
def test_a_cluster_has_nodes_of_its_own_where_all_instance_groups_are_empty(mode, inside, status):
    data = organization(groups=[group("gpu", "ml.g5.12xlarge", 0)])
    data["environments"]["dev"]["eks"]["existing"] = {"name": "kube"}
    plan = derive(typed(data), "dev")
    answer = {"cluster": {"name": "kube", "status": "ACTIVE", "version": "1.35", **mode}}
    rows = rows_of(plan, {eks_cluster(plan).key: answer, KUBERNETES.key: inside})
    assert rows["nodes of kube for CoreDNS and the add-ons"].status == status
    assert "nodes of kube for CoreDNS and the add-ons" not in rows_of(EXISTING, {eks_cluster(EXISTING).key: answer})


def test_a_cluster_that_states_no_authentication_mode_has_that_of_old():
    given = {eks_cluster(EXISTING).key: {"cluster": {"status": "CREATING", "version": "1.35"}}}
    rows = rows_of(EXISTING, given)
    row = rows["EKS cluster kube, authentication mode"]
    assert (row.status, row.found) == ("missing", "CONFIG_MAP")
    assert row.command.endswith("--access-config authenticationMode=API_AND_CONFIG_MAP --region us-west-2")
    assert rows["EKS cluster kube"].status == "missing", "CREATING is not ACTIVE"


ADMIN, MEMBER = (f"arn:aws:iam::123456789012:role/{name}" for name in ("admin", "nlp"))
NO_ENTRY = FailedCall("eks:DescribeAccessEntry", "ResourceNotFoundException", "No entry")


def entries(response):
    data = organization(teams=[team("nlp", members=[MEMBER])])
    data["environments"]["dev"] |= {
        "eks": {"version": "1.35", "existing": {"name": "kube"}, "administrators": [ADMIN]},
        "governance": {"allocations": {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}},
    }
    plan = derive(typed(data), "dev")
    found = {"cluster": {"name": "kube", "status": "ACTIVE", "version": "1.35"}}
    given = {eks_cluster(plan).key: found, access_entry(plan, ADMIN).key: response}
    given[access_entry(plan, MEMBER).key] = NO_ENTRY
    asked = {call.key for call in further_calls(plan, Responses({CLUSTERS.key: {"ClusterSummaries": []}, **given}))}
    assert {access_entry(plan, each).key for each in (ADMIN, MEMBER)} <= asked
    return {what: row for what, row in rows_of(plan, given).items() if what.startswith("access entry")}


def test_an_access_entry_that_somebody_else_made_is_in_the_way():
    (row,) = entries({"accessEntry": {"principalArn": ADMIN, "tags": {}}}).values()
    assert (row.what, row.status, row.found) == (f"access entry of {ADMIN} in kube", "missing", "exists")
    assert row.fix.startswith("Remove the role from `eks.administrators`")


def test_the_stacks_own_access_entry_is_as_it_must_be():
    own = {"hpkit:organization": "acme", "hpkit:environment": "dev"}
    (row,) = entries({"accessEntry": {"principalArn": ADMIN, "tags": own}}).values()
    assert row.status == "ok"


def test_no_access_entry_says_nothing_and_one_that_cannot_be_looked_up_is_unknown():
    assert entries(NO_ENTRY) == {}
    assert [row.status for row in entries(DENIED).values()] == ["unknown"]


@pytest.mark.parametrize("existing", [{"existing": {"name": "kube"}}, {}], ids=["existing", "own"])
@pytest.mark.parametrize(("role_created", "statuses"), [(1, []), (3, ["missing"])])
def test_an_access_entry_that_is_older_than_its_role_is_dead(existing, role_created, statuses):
    data = organization()
    data["environments"]["dev"]["eks"] = {"version": "1.35", "administrators": [ADMIN], **existing}
    plan = derive(typed(data), "dev")
    own = {"hpkit:organization": "acme", "hpkit:environment": "dev"}
    entry = {"principalArn": ADMIN, "tags": own, "createdAt": datetime(2026, 11, 2, tzinfo=UTC)}
    given = {
        eks_cluster(plan).key: {"cluster": {"name": "kube", "status": "ACTIVE", "version": "1.35", "tags": own}},
        access_entry(plan, ADMIN).key: {"accessEntry": entry},
        role("admin").key: {"Role": {"CreateDate": datetime(2026, 11, role_created, tzinfo=UTC)}},
    }
    rows = [row for what, row in rows_of(plan, given).items() if what.endswith("to work")]
    assert [row.status for row in rows] == statuses
    assert [f"--principal-arn {ADMIN} " in row.command for row in rows] == [True] * len(rows)


def test_an_add_on_that_takes_over_a_self_managed_one_is_announced():
    plan = plan_of(eks={"version": "1.35", "existing": {"name": "kube"}}, addons={"coredns": {}})
    cluster = {"status": "ACTIVE", "version": "1.35", "accessConfig": {"authenticationMode": "API"}}
    row = rows_of(plan, {eks_cluster(plan).key: {"cluster": cluster}, eks_addon(plan, "coredns").key: ABSENT})[
        "add-on coredns to be installed on kube"
    ]
    assert row.status == "changed"
    assert "Corefile" in row.found
    assert "addons.coredns.configurationValues" in row.fix
