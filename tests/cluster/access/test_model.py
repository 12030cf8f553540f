"""The table of principals and permissions, and its differences from the file."""

import pytest

from hpkit.cluster.access.check import Resource, allows, check, find_resource
from hpkit.cluster.access.model import (
    CLUSTER,
    Access,
    Binding,
    Entry,
    Policy,
    called,
    differences,
    find_entry,
    matrix,
    without_entry,
)
from hpkit.errors import SelectionError
from hpkit.plan.access import ADMINISTRATOR_POLICY, RELEASES_POLICY, TEAM_ROLE, VIEWER_GROUP, VIEWER_ROLE
from hpkit.plan.derive import derive
from tests.builders import organization, team, typed

JOBS = Resource("batch", "jobs", "", True, ("create", "get"), ("job",))
ROLE = "arn:aws:iam::123456789012:role"
ADMIN, ADA, EVE = f"{ROLE}/Admin", f"{ROLE}/path/ada", f"{ROLE}/eve"


def plan():
    share = {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    data = organization(teams=[team("nlp", members=[ADA])], allocations=share)
    data["environments"]["dev"]["eks"]["administrators"] = [ADMIN]
    return derive(typed(data), "dev")


def binding(namespace, *groups, role=TEAM_ROLE):
    return Binding(role, namespace, role, (), groups)


def as_the_file_says():
    entries = (
        Entry(ADMIN, "admin", (), policies=(Policy(ADMINISTRATOR_POLICY),)),
        Entry(ADA, "ada", ("hyperpod:team:nlp",)),
        Entry(f"{ROLE}/nodes", "node", ("system:nodes",), type="HYPERPOD_LINUX"),
    )
    return Access(entries, (binding("hyperpod-ns-nlp", "hyperpod:team:nlp"), binding(None, "hyperpod:team:nlp")))


def test_each_principal_has_its_roles_by_place_and_through_what():
    rows = {row.principal: row for row in matrix(as_the_file_says(), plan())}
    ada, admin = rows[ADA], rows[ADMIN]
    assert ada.file == ("member of nlp",)
    assert list(ada.grants) == [CLUSTER, "hyperpod-ns-nlp"]
    assert ada.grants["hyperpod-ns-nlp"][0].through == f"RoleBinding {TEAM_ROLE}, group hyperpod:team:nlp"
    assert [grant.role for grant in admin.grants[CLUSTER]] == ["administrator"]
    assert len(rows) == 2, "an entry of nodes is nobody's"


def test_who_lacks_an_entry_is_in_the_matrix_all_the_same():
    row = next(row for row in matrix(Access((), ()), plan()) if row.principal == ADA)
    assert dict(row.grants) == {}
    assert f"{ADA} is in the file, but has no access entry; `pulumi up` creates it" in differences(
        Access((), ()), plan()
    )


def test_a_viewer_has_its_group_and_reads_secrets_only_where_helm_keeps_releases():
    good = as_the_file_says()
    share = {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    data = organization(teams=[team("nlp", members=[ADA])], allocations=share)
    data["environments"]["dev"]["eks"] |= {"administrators": [ADMIN], "viewers": [EVE]}
    seen = derive(typed(data), "dev")
    bindings = (*good.bindings, binding(None, VIEWER_GROUP, role=VIEWER_ROLE))
    limited = Entry(EVE, "eve", (VIEWER_GROUP,), policies=(Policy(RELEASES_POLICY, ("kube-system",)),))
    assert differences(Access((*good.entries, limited), bindings), seen) == ()
    whole = Entry(EVE, "eve", (), policies=(Policy(RELEASES_POLICY),))
    assert differences(Access((*good.entries, whole), good.bindings), seen) == (
        f"{EVE} is a viewer in the file, but not in its access entry",
        f"{EVE} has {RELEASES_POLICY} in kube-system in the file, but not in its access entry",
        f"{EVE} has {RELEASES_POLICY}, but not in the file",
        f"viewers have no binding to {VIEWER_ROLE}; `pulumi up` creates it",
    )


def test_what_somebody_added_beside_the_file_is_a_difference():
    good = as_the_file_says()
    eve = Entry(EVE, "eve", ("hyperpod:team:nlp", "friends"), policies=(Policy("AmazonEKSViewPolicy", ("default",)),))
    secret = binding("hyperpod-ns-nlp", "friends", role="admin")
    found = differences(Access((*good.entries, eve), (*good.bindings, secret)), plan())
    assert found == (
        f"{EVE} has an access entry (AmazonEKSViewPolicy, hyperpod:team:nlp, friends), but isn't in the file",
        "group friends has admin in the namespace of nlp, which doesn't come from the file",
    )


def test_who_made_the_cluster_has_an_entry_of_eks_and_is_no_difference():
    good = as_the_file_says()
    maker = Entry(EVE, "eve", (), policies=(Policy(ADMINISTRATOR_POLICY),), of_creator=True)
    access = Access((*good.entries, maker), good.bindings)
    assert differences(access, plan()) == ()
    assert {called(row) for row in matrix(access, plan())} == {
        "administrator",
        "member of nlp",
        "no; it created the cluster",
    }


def test_a_lost_group_policy_and_binding_are_differences():
    entries = (Entry(ADMIN, "admin", ()), Entry(ADA, "ada", ("other",)))
    drift = differences(Access(entries, ()), plan())
    assert f"{ADMIN} has {ADMINISTRATOR_POLICY} in the file, but not in its access entry" in drift
    assert f"{ADA} is a member of team nlp in the file, but not in its access entry" in drift
    assert f"{ADA} has the group other in its access entry, but not in the file" in drift
    assert f"team nlp has no binding to {TEAM_ROLE} in the cluster; `pulumi up` creates it" in drift


def test_a_principal_is_meant_by_arn_session_or_name():
    access = as_the_file_says()
    session = "arn:aws:sts::123456789012:assumed-role/ada/me"
    assert {find_entry(access, each).principal for each in (ADA, session, "ada")} == {ADA}
    assert find_entry(access, "adda") is None
    with pytest.raises(SelectionError, match="use the full ARN"):
        find_entry(Access((*access.entries, Entry(f"{ROLE}/other/ada", "", ())), ()), "ada")
    assert without_entry(access, "adda") == "adda has no access entry, so it has no permissions; did you mean ada?"
    assert without_entry(access, f"{ROLE}/adda").endswith(f"did you mean {ADA}?")
    assert "did you mean" not in without_entry(access, f"{ROLE}/zq"), "all ARNs begin alike"


class Server:
    """An API server whose RBAC allows nothing, and whose ClusterRole `edit` creates jobs."""

    def get(self, _):
        return {"rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]}]}

    def create(self, *_):
        return {"status": {"allowed": False}}


@pytest.mark.parametrize(
    ("namespaces", "allowed"),
    [
        (("hyperpod-ns-nlp",), True),
        (("hyperpod-ns-*",), True),
        (("kube-system", "*"), True),
        (("hyperpod-ns-v*",), False),
        (("hyperpod-ns-nl",), False),
    ],
)
def test_a_policy_holds_in_the_namespaces_that_its_wildcards_mean(namespaces, allowed):
    entry = Entry(ADA, "ada", (), policies=(Policy("AmazonEKSEditPolicy", namespaces),))
    answer = check(Server(), entry, "create", JOBS, "hyperpod-ns-nlp")
    assert answer.allowed == allowed
    assert answer.reasons == (("access policy AmazonEKSEditPolicy, in hyperpod-ns-nlp",) if allowed else ())
    assert not check(Server(), entry, "create", JOBS, None).allowed, "not in all namespaces"


LOG = Resource("", "pods", "log", True, ("get",), ("po", "pod"))
METRICS = Resource("metrics.k8s.io", "pods", "", True, ("get",))


MEANT = {"jobs": JOBS, "job": JOBS, "jobs.batch": JOBS, "pods/log": LOG, "pods.metrics.k8s.io": METRICS}


@pytest.mark.parametrize(("text", "meant"), MEANT.items(), ids=str)
def test_a_resource_is_meant_as_kubectl_means_it(text, meant):
    assert find_resource((METRICS, JOBS, LOG), text) is meant


def test_a_ruleallows_what_it_names_and_no_more():
    rule = {"apiGroups": ["batch"], "resources": ["jobs", "*/log"], "verbs": ["get"]}
    assert allows(rule, "get", JOBS)
    assert not allows(rule, "create", JOBS)
    assert not allows(rule, "get", LOG)
    assert allows({**rule, "apiGroups": [""]}, "get", LOG)
    assert not allows({**rule, "resourceNames": ["one"]}, "get", JOBS)
    assert allows({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, "delete", LOG)
