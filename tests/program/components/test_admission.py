"""What the text of the admission policies forbids a team; tests/security shows that they are enforced."""

from hpkit.plan.derive import derive
from hpkit.plan.team_limits import pod_limits
from hpkit.program.components.admission.policies import pod_security_labels, policies_of, request_limits
from tests.builders import organization, team, typed

G5 = "ml.g5.12xlarge"


def teams(*given):
    rows = {each["name"]: [{"instanceType": G5, "count": 1}] for each in given}
    return derive(typed(organization(teams=list(given), allocations=rows)), "dev").teams


def policy(name, *given):
    (found,) = (each for each in policies_of(teams(*given)) if each.name == name)
    return found


def test_only_the_service_accounts_that_the_file_names_are_a_teams():
    given = (team("ada", serviceAccounts=["trainer"]), team("bob"))
    for name in ("hpkit-team-pods", "hpkit-team-jobs", "hpkit-team-workloads"):
        (found,) = (each for each in policy(name, *given).refusals if each.field == "spec.serviceAccountName")
        assert (
            "{'hyperpod-ns-ada': ['default', 'trainer']}[?request.namespace].orValue(['default'])" in found.expression
        )


def test_taints_of_the_file_may_be_tolerated_and_reserved_ones_never():
    data = organization()
    (group, *_) = data["environments"]["dev"]["cluster"]["instanceGroups"]
    group["taints"] = [
        {"key": key, "effect": "NoSchedule"} for key in ("team/large", "sagemaker.amazonaws.com/node-health-status")
    ]
    limits = pod_limits(derive(typed(data), "dev"))
    assert "team/large" in limits.tolerations
    assert "sagemaker.amazonaws.com/node-health-status" not in limits.tolerations


def test_a_container_without_requests_gets_those_of_the_file():
    data = organization()
    data["environments"]["dev"]["governance"]["teamLimits"] = {"defaultRequests": {"cpu": "2"}}
    given, least = request_limits(pod_limits(derive(typed(data), "dev")))
    assert given == {"cpu": "2", "memory": "256Mi"}
    assert least == {"cpu": "1m", "memory": "1Mi"}


def test_the_level_of_a_namespace_is_of_the_clusters_version():
    labels = pod_security_labels("1.35")
    levels = {mode: labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "warn", "audit")}
    assert levels == {"enforce": "baseline", "warn": "baseline", "audit": "restricted"}
    assert labels["pod-security.kubernetes.io/enforce-version"] == "v1.35"
