"""The steps of a trial, in their order. Each returns what it found, and what it finds on the local cloud.

The expected changes are those that `hpkit review` predicts from the organization file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from boto3 import Session
from botocore.exceptions import ClientError
from kubernetes.client import ApiException

from hpkit.clients.kubernetes import KUBERNETES_ERRORS
from hpkit.cluster.check.probes import NAME as CHECK
from hpkit.cluster.jobs.new import manifest, team_of
from hpkit.cluster.live.kubernetes import CONFLICT, NOT_FOUND, Kubernetes
from hpkit.errors import HpkitError
from hpkit.plan.lustre import shell_image
from hpkit.plan.principals import made_role_arn
from hpkit.trial.organization import BURST, NAME, STACK, TAGGED, WORK, Place
from hpkit.trial.site import Site, StepError

__all__ = ["STEPS", "Facts", "Step", "sweep"]

Facts = dict[str, Any]
_MINUTE: Final = 60.0
_HOUR: Final = 60 * _MINUTE
_JOB: Final = "hpkit-trial"
_NAMESPACE: Final = "hpkit-trial"
_QUEUES: Final = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
_JOBS: Final = "/apis/batch/v1/namespaces/{}/jobs"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# A day on the local cloud, where no container runs.
_RUNS: Final = {"hpkit.local/run": "24h"}
_SLEEP: Final = ["sleep", "86400"]
# Exit codes of `--expect-no-changes` if there are some: of Pulumi 3.226.1 and later, and of earlier versions.
_CHANGES_EXPECTED: Final = (7, 255, 1)
_QUOTA_UPDATE: Final = "update hyperpod:index:ComputeQuota"
# More vCPUs than alpha's quota, in pods that fit next to the pods of add-ons.
_PODS: Final = 5
_WITH_PODS: Final = {"propagationPolicy": "Foreground"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it tests, and its time limit in seconds."""

    name: str
    title: str
    seconds: float
    run: Callable[[Site, Place], tuple[Facts, Facts]]


def _preflight(site: Site, place: Place) -> tuple[Facts, Facts]:
    del place
    # 1: something is missing.
    output = site.command("hpkit", "aws", "preflight", "--stack", STACK, "--format", "json", ok=(0, 1))
    checks = _document(output)["checks"]
    missing = [
        f"{check['what']}: {check['found']}, needs {check['needed']}. {check['fix']}"
        for check in checks
        if check["status"] == "missing"
    ]
    if missing:
        raise StepError("\n".join(missing))
    return {}, {}


def _document(output: str) -> Any:
    """Return the JSON document in a command's output, which also has its messages. Raises StepError with these."""
    begin = re.search(r"^\{", output, re.MULTILINE)
    if begin is None:
        raise StepError(output.strip() or "the command shows nothing")
    return json.JSONDecoder().raw_decode(output, begin.start())[0]


def _up(site: Site, place: Place) -> tuple[Facts, Facts]:
    site.write(place)
    return _changed(site)


def _preview(site: Site, place: Place) -> tuple[Facts, Facts]:
    del place
    return {"changes": site.pulumi("preview", "--expect-no-changes").counts}, {"changes": {}}


def _add_team(site: Site, place: Place) -> tuple[Facts, Facts]:
    site.write(place, third_team=True)
    return _changed(site)


def _shift_quota(site: Site, place: Place) -> tuple[Facts, Facts]:
    site.write(place, third_team=True, shifted=True)
    found, expected = _changed(site)
    with site.kubernetes() as api:
        for team, processors in (("alpha", "4"), ("beta", "8")):
            queue = api.get(f"{_QUEUES}/{team_of(site.plan(), team).cluster_queue}")
            found[f"cpu of {team}"], expected[f"cpu of {team}"] = _nominal(queue, "cpu"), processors
    return found, expected


def _changed(site: Site) -> tuple[Facts, Facts]:
    """Run `pulumi up`, and return its changes and the predicted ones."""
    expected = site.foretell()
    return {"changes": site.pulumi("up").counts}, {"changes": expected}


def _nominal(queue: Mapping[str, Any], resource: str) -> str:
    return next(
        (
            str(row["nominalQuota"])
            for group in queue["spec"]["resourceGroups"]
            for flavor in group["flavors"]
            for row in flavor["resources"]
            if row["name"] == resource and str(row["nominalQuota"]) != "0"
        ),
        "0",
    )


def _check(site: Site, place: Place) -> tuple[Facts, Facts]:
    del place
    output = site.command("hpkit", "cluster", "check", "--stack", STACK, "--format", "json", ok=(0, 1))
    rows = _document(output)["items"]
    failed = [f"{row['name']}: {row['detail']}" for row in rows if row["status"] == "failed"]
    if failed:
        raise StepError("\n".join(failed))
    empty = ("group burst", "team gamma")
    return (
        {row["name"]: row["status"] for row in rows},
        {row["name"]: "skipped" if row["name"] in empty else "ok" for row in rows},
    )


def _borrow(site: Site, place: Place) -> tuple[Facts, Facts]:
    """Run a job that needs more than its team's quota, and less than it may borrow."""
    del place
    plan = site.plan()
    team = team_of(plan, "alpha")
    job = manifest(
        plan,
        team,
        kind="job",
        name=_JOB,
        instance_type=WORK,
        count=_PODS,
        priority=None,
        topology=None,
        image=shell_image(plan.spec),
    )
    template = job["spec"]["template"]
    template["metadata"]["annotations"] = _RUNS
    container = template["spec"]["containers"][0]
    container["command"] = _SLEEP
    container["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    template["spec"]["terminationGracePeriodSeconds"] = 1
    folder = _JOBS.format(team.namespace)
    with site.kubernetes() as api, _created(site, api, folder, job):

        def running() -> bool:
            return int((api.get(f"{folder}/{_JOB}").get("status") or {}).get("ready") or 0) == _PODS

        site.wait(running, f"the job {_JOB} of alpha, which borrows")
        borrowed: dict[str, str] = {}

        def reported() -> bool:
            borrowed.update(_borrowed(api.get(f"{_QUEUES}/{team.cluster_queue}")))
            return bool(borrowed)

        # Kueue updates a queue's status later than its jobs start.
        site.wait(reported, f"the queue {team.cluster_queue} to report what it borrows")
    return {"borrowed cpu": borrowed.get("cpu")}, {"borrowed cpu": "1"}


def _borrowed(queue: Mapping[str, Any]) -> dict[str, str]:
    """Return how much of each resource a queue reports as borrowed."""
    return {
        row["name"]: str(row["borrowed"])
        for flavor in queue["status"].get("flavorsUsage") or ()
        for row in flavor["resources"]
        if str(row.get("borrowed") or "0") != "0"
    }


def _karpenter(site: Site, place: Place) -> tuple[Facts, Facts]:
    """Run a pod that only the NodePool's node fits, and delete it."""
    del place
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _JOB, "namespace": _NAMESPACE, "annotations": _RUNS},
        "spec": {
            "nodeSelector": {"node.kubernetes.io/instance-type": BURST},
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": shell_image(site.plan().spec),
                    "command": _SLEEP,
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
                }
            ],
        },
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
    folder = f"/api/v1/namespaces/{_NAMESPACE}/pods"
    with site.kubernetes() as api:

        def nodes() -> int:
            query = (("labelSelector", f"node.kubernetes.io/instance-type={BURST}"),)
            return len(list(api.pages("/api/v1/nodes", query)))

        counts = [nodes()]
        with _created(site, api, "/api/v1/namespaces", namespace):
            with _created(site, api, folder, pod):
                site.wait(lambda: api.get(f"{folder}/{_JOB}")["status"].get("phase") == "Running", f"a node of {BURST}")
                counts.append(nodes())
            site.wait(lambda: nodes() == 0, f"the removal of the node of {BURST}")
            counts.append(nodes())
    return {"nodes": counts}, {"nodes": [0, 1, 0]}


def _members(site: Site, place: Place) -> tuple[Facts, Facts]:
    """Ask as each team's member what it can do, in its namespace and in another team's."""
    plan = site.plan()
    sts = site.session.client("sts")
    facts: Facts = {}
    wrong = []
    for team in plan.teams:
        arn = made_role_arn(plan.organization, plan.environment, plan.spec, team.spec)
        answer = sts.assume_role(RoleArn=arn, RoleSessionName=_JOB)["Credentials"]
        member = Session(
            aws_access_key_id=answer["AccessKeyId"],
            aws_secret_access_key=answer["SecretAccessKey"],
            aws_session_token=answer["SessionToken"],
            region_name=place.region,
        )
        other = next(each for each in plan.teams if each.name != team.name)
        with site.kubernetes(member) as api:
            allowed = {
                "creates jobs in its namespace": _may(api, "create", "jobs", "batch", team.namespace),
                "creates jobs in another": _may(api, "create", "jobs", "batch", other.namespace),
                "reads pods in another": _may(api, "list", "pods", "", other.namespace),
                "deletes nodes": _may(api, "delete", "nodes", "", ""),
            }
        facts[team.name] = allowed
        if allowed != {name: name == "creates jobs in its namespace" for name in allowed}:
            wrong.append(f"{team.name}: {', '.join(f'{name}: {value}' for name, value in allowed.items())}")
    if wrong:
        raise StepError("\n".join(wrong))
    return facts, facts


@contextmanager
def _created(site: Site, api: Kubernetes, folder: str, document: Mapping[str, Any]) -> Iterator[None]:
    """Create an object, and delete it in the end, with what belongs to it."""
    path = f"{folder}/{document['metadata']['name']}"
    try:
        try:
            api.create(folder, document)
        except ApiException as error:
            # A step that was killed left it.
            if error.status != CONFLICT:
                raise
        yield
    finally:
        try:
            api.delete(path, _WITH_PODS)
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise
    site.wait(lambda: api.find(path) is None, f"the deletion of {path}")


def sweep(site: Site) -> None:
    """Delete what a killed step left in the cluster: Kueue and `hpkit aws destroy` keep queues with an unfinished job.

    A cluster that doesn't answer has nothing that can be deleted this way.
    """
    with suppress(HpkitError, ClientError, *KUBERNETES_ERRORS), site.kubernetes() as api:
        folders = [_JOBS.format(team.namespace) for team in site.plan().teams]
        jobs = [f"{folder}/{job['metadata']['name']}" for folder in folders for job in api.pages(folder)]
        for path in (*jobs, *(f"/api/v1/namespaces/{name}" for name in (_NAMESPACE, CHECK))):
            if api.find(path) is not None:
                api.delete(path, _WITH_PODS)


def _may(api: Kubernetes, verb: str, resource: str, group: str, namespace: str) -> bool:
    attributes = {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(api.create(_REVIEWS, review)["status"]["allowed"])


def _drift(site: Site, place: Place) -> tuple[Facts, Facts]:
    """Change a quota behind Pulumi's back, find the change, and revert it."""
    del place
    sagemaker = site.session.client("sagemaker")
    quotas = sagemaker.list_compute_quotas(ClusterArn=_cluster_arn(sagemaker))["ComputeQuotaSummaries"]
    quota = next(each for each in quotas if each["ComputeQuotaTarget"]["TeamName"] == "beta")
    target = {"TeamName": "beta", "FairShareWeight": 10}
    sagemaker.update_compute_quota(
        ComputeQuotaId=quota["ComputeQuotaId"], TargetVersion=quota["ComputeQuotaVersion"], ComputeQuotaTarget=target
    )

    def settled() -> bool:
        status = str(sagemaker.describe_compute_quota(ComputeQuotaId=quota["ComputeQuotaId"])["Status"])
        if status.endswith("Failed"):
            raise StepError(f"the update of the quota of beta ended in {status}")
        return status in ("Created", "Updated")

    site.wait(settled, "the update of the quota of beta")
    found = site.pulumi("preview", "--refresh", "--expect-no-changes", ok=(0, *_CHANGES_EXPECTED)).counts
    if _QUOTA_UPDATE not in found:
        raise StepError("`pulumi preview --refresh` doesn't find a changed quota")
    repaired = site.pulumi("up", "--refresh").counts
    # Other drift is a difference, and doesn't end the trial.
    left = site.pulumi("preview", "--refresh", "--expect-no-changes", ok=(0, *_CHANGES_EXPECTED)).counts
    if _QUOTA_UPDATE in left:
        raise StepError("`pulumi up --refresh` doesn't revert a changed quota")
    quota_changed = {_QUOTA_UPDATE: 1}
    return (
        {"found": found, "reverted": repaired, "left": left},
        {"found": quota_changed, "reverted": quota_changed, "left": {}},
    )


def _cluster_arn(sagemaker: Any) -> str:
    return str(sagemaker.describe_cluster(ClusterName=NAME)["ClusterArn"])


def _destroy(site: Site, place: Place) -> tuple[Facts, Facts]:
    del place
    expected = site.foretell(deletion=True)
    return {"changes": site.pulumi("destroy").counts, "left": len(site.resources())}, {"changes": expected, "left": 0}


def _leftovers(site: Site, place: Place) -> tuple[Facts, Facts]:
    """Look in the account for what has the stack's names and tags."""
    # Names that must be free.
    _preflight(site, place)
    ec2 = site.session.client("ec2")
    left = [
        *(each["VpcId"] for each in ec2.describe_vpcs(Filters=TAGGED)["Vpcs"]),
        *(each["AllocationId"] for each in ec2.describe_addresses(Filters=TAGGED)["Addresses"]),
        *(each["VolumeId"] for each in ec2.describe_volumes(Filters=TAGGED)["Volumes"]),
    ]
    if left:
        raise StepError(f"these remain: {', '.join(left)}")
    with suppress(ClientError):
        _delete_logs(site)
    return {}, {}


def _delete_logs(site: Site) -> None:
    """Delete the log groups that HyperPod makes, and those that EKS makes again after its cluster's deletion."""
    logs = site.session.client("logs")
    for prefix in (f"/aws/sagemaker/Clusters/{NAME}/", f"/aws/eks/{STACK}/"):
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix):
            for group in page["logGroups"]:
                logs.delete_log_group(logGroupName=group["logGroupName"])


STEPS: Final = (
    Step("preflight", "The account has what the stack needs", 10 * _MINUTE, _preflight),
    Step("up", "Everything is created", 1.5 * _HOUR, _up),
    Step("preview", "A preview shows no changes", 10 * _MINUTE, _preview),
    Step("team", "A third team is added", 20 * _MINUTE, _add_team),
    Step("quota", "Quota moves from alpha to beta", 20 * _MINUTE, _shift_quota),
    Step("check", "Pods of each group and a job of each team run", 20 * _MINUTE, _check),
    Step("borrow", "A job of alpha borrows from beta", 15 * _MINUTE, _borrow),
    Step("karpenter", "Karpenter adds a node and removes it", 30 * _MINUTE, _karpenter),
    Step("members", "Members have their team's permissions only", 5 * _MINUTE, _members),
    Step("drift", "A manual change is found and reverted", 30 * _MINUTE, _drift),
    Step("destroy", "Everything is deleted", 1.5 * _HOUR, _destroy),
    Step("again", "Everything is created again under the same names", 1.5 * _HOUR, _up),
    Step("destroy-again", "Everything is deleted again", 1.5 * _HOUR, _destroy),
    Step("leftovers", "Nothing is left in the account", 10 * _MINUTE, _leftovers),
)
