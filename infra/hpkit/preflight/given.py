"""Checks whether the existing roles, bucket and keys in the file have the required permissions and settings.

Sources:
- SageMaker HyperPod developer guide, "IAM role for SageMaker HyperPod", "Create an IAM role for HyperPod autoscaling".
- Amazon EKS user guide, EKS Pod Identity.
- SageMaker API reference, ClusterLifeCycleConfig.
- IAM API reference, SimulatePrincipalPolicy.
- FSx for Lustre user guide, "Region and account support for linked S3 buckets".
- AWS KMS API reference, GenerateDataKey (symmetric encryption keys only).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.existing import cluster_role, execution_roles, pod_roles
from hpkit.plan.model import Plan
from hpkit.preflight.calls import (
    CALLER,
    bucket_encryption,
    bucket_location,
    buckets_of_teams,
    existing_bucket,
    is_linked,
    key_of_web_ui,
    role,
    simulations,
    team_bucket,
)
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.text.formatting import listing

__all__ = ["check_given"]

_ROLES: Final = "roles"
_STORAGE: Final = "storage"
_SPACES: Final = "spaces"
_NODES: Final = "sagemaker.amazonaws.com"
_KARPENTER: Final = "hyperpod.sagemaker.amazonaws.com"
_PODS: Final = "pods.eks.amazonaws.com"
_ASSUME: Final = frozenset({"sts:AssumeRole", "sts:*", "*"})
_PREFIX: Final = "sagemaker-"
# GetBucketLocation's values for the first two regions (Amazon S3 API reference).
_LOCATIONS: Final = {"": "us-east-1", "EU": "eu-west-1"}


def check_given(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check whom the roles trust, what execution roles may do, the bucket of scripts, and the web UI's key."""
    services = dict.fromkeys(pod_roles(plan), _PODS)
    karpenter = cluster_role(plan)
    services |= ({karpenter: _KARPENTER} if karpenter else {}) | dict.fromkeys(execution_roles(plan), _NODES)
    for arn, service in sorted(services.items()):
        yield from _trust(responses, arn, service)
    for arn in execution_roles(plan):
        yield _rights(plan, responses, arn)
    bucket = existing_bucket(plan)
    if bucket is not None:
        yield from _bucket(plan, responses, bucket)
    caller = responses.of(CALLER)
    if not isinstance(caller, FailedCall):
        for name in buckets_of_teams(plan):
            yield _team_bucket(plan, responses.of(team_bucket(name, caller["Account"])), name, caller["Account"])
    key = key_of_web_ui(plan)
    if key is not None:
        yield _key(responses.of(key), f"KMS key {key.params['KeyId']}")


def _team_bucket(plan: Plan, response: Any, bucket: str, account: str) -> CheckResult:
    subject, needed = f"bucket {bucket} of data", f"in account {account}, in {plan.spec.region}"
    if not isinstance(response, FailedCall):
        found = _region(response)
        if found == plan.spec.region:
            return ok(_STORAGE, subject, found=needed, needed=needed)
        fix = f"Use a bucket in {plan.spec.region}"
        if is_linked(plan, bucket):
            fix = f"{fix}: FSx imports changes only from buckets in the region of the file system"
            return missing(_STORAGE, subject, found=f"in {found}", needed=needed, fix=fix)
        if plan.spec.network.closed:
            fix = f"{fix}: a closed network only reaches S3 in its own region"
            return missing(_STORAGE, subject, found=f"in {found}", needed=needed, fix=fix)
        why = f"Pods reach S3 in {found} only through the internet, and AWS charges for transfers between regions"
        return unknown(_STORAGE, subject, why=why, fix=fix, found=f"in {found}", needed=needed)
    if response.is_absence:
        return missing(_STORAGE, subject, found="missing", needed=needed, fix="Create it, or correct its name")
    fix = f"Use a bucket of account {account}: teams can't use others. If it is one, allow {response.action} on it"
    return missing(_STORAGE, subject, found=f"{response.code}: another account's, or closed", needed=needed, fix=fix)


def _key(response: Any, subject: str) -> CheckResult:
    """Check the key of the web UI's tokens: the router needs permissions that only a symmetric key supports."""
    needed = "enabled, SYMMETRIC_DEFAULT"
    fix = "Set `spaces.webUi.kmsKeyArn` to an enabled key of type Symmetric, for encryption and decryption"
    if isinstance(response, FailedCall):
        if response.is_absence:
            return missing(_SPACES, subject, found="missing", needed=needed, fix=fix)
        return call_failed(_SPACES, subject, response, needed=needed)
    state = f"{str(response['KeyMetadata']['KeyState']).lower()}, {response['KeyMetadata']['KeySpec']}"
    if state == needed:
        return ok(_SPACES, subject, found=state, needed=needed)
    return missing(_SPACES, subject, found=state, needed=needed, fix=fix)


def _trust(responses: Responses, arn: str, service: str) -> Iterator[CheckResult]:
    """Check that a service can assume a role; if the role can't be read, another line reports that."""
    response = responses.of(role(arn.rpartition("/")[2]))
    if isinstance(response, FailedCall):
        return
    subject, needed = f"trust of {arn}", service
    trusting = [each for each in _statements(response["Role"]["AssumeRolePolicyDocument"]) if _trusts(each, service)]
    if not trusting:
        fix = f"Allow {service} to assume it (sts:AssumeRole) in its trust policy"
        yield missing(_ROLES, subject, found="trusts others", needed=needed, fix=fix)
    elif all(each.get("Condition") for each in trusting) and service != _PODS:
        why = (
            f"Its trust policy has conditions, and AWS doesn't document which keys are present when {service} "
            "assumes it"
        )
        fix = "If instances or nodes don't start, remove the conditions"
        yield unknown(_ROLES, subject, why=why, fix=fix, found="with conditions", needed=needed)
    else:
        yield ok(_ROLES, subject, found=service, needed=needed)


def _statements(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = document.get("Statement", [])
    return [found] if isinstance(found, Mapping) else list(found)


def _trusts(statement: Mapping[str, Any], service: str) -> bool:
    principal = statement.get("Principal", {})
    services = _listed(principal.get("Service", [])) if isinstance(principal, Mapping) else []
    actions = _listed(statement.get("Action", []))
    return statement.get("Effect") == "Allow" and service in services and not _ASSUME.isdisjoint(actions)


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _rights(plan: Plan, responses: Responses, arn: str) -> CheckResult:
    """Check what nodes do with their role, as IAM simulates it; policies of buckets and organizations it leaves out."""
    subject, needed = f"permissions of {arn}", "permissions that nodes need on EKS"
    denied: list[str] = []
    for call in simulations(plan, arn):
        response = responses.of(call)
        if isinstance(response, FailedCall):
            return call_failed(_ROLES, subject, response, needed=needed)
        denied += [
            f"{result['EvalActionName']} on {result['EvalResourceName']}"
            for result in response["EvaluationResults"]
            if result["EvalDecision"] != "allowed"
        ]
    if denied:
        fix = (
            "Attach AmazonSageMakerClusterInstanceRolePolicy and the EKS additions of the developer guide. Or "
            "remove executionRole, and hpkit creates a role"
        )
        return missing(_ROLES, subject, found=f"not allowed: {listing(denied)}", needed=needed, fix=fix)
    return ok(_ROLES, subject, found="allowed, as far as IAM simulates it", needed=needed)


def _bucket(plan: Plan, responses: Responses, bucket: str) -> Iterator[CheckResult]:
    location = responses.of(bucket_location(plan))
    subject = f"bucket {bucket}"
    if isinstance(location, FailedCall):
        if location.is_absence:
            fix = "Set `storage.existing.bucket` to an existing bucket, or remove `existing`: hpkit creates one"
            yield missing(_STORAGE, subject, found="missing", needed="exists", fix=fix)
        else:
            yield call_failed(_STORAGE, subject, location, needed="exists")
        return
    region = _region(location)
    if region == plan.spec.region:
        yield ok(_STORAGE, subject, found=f"in {region}", needed=plan.spec.region)
    else:
        fix = f"Use a bucket in {plan.spec.region}: nodes of a closed network only reach S3 in their own region"
        yield missing(_STORAGE, subject, found=f"in {region}", needed=plan.spec.region, fix=fix)
    yield _encryption(plan, responses, subject)
    if execution_roles(plan) and not bucket.startswith(_PREFIX):
        why = f"AmazonSageMakerClusterInstanceRolePolicy only lets nodes read buckets whose names begin with {_PREFIX}"
        roles = listing(list(execution_roles(plan)))
        fix = f"Check that {roles} may s3:GetObject and s3:ListBucket there, or copy the scripts"
        yield unknown(_STORAGE, f"{subject}, name", why=why, fix=fix, found=bucket, needed=f"{_PREFIX}…")


def _region(location: Mapping[str, Any]) -> str:
    stated = location.get("LocationConstraint") or ""
    return _LOCATIONS.get(stated, stated)


def _encryption(plan: Plan, responses: Responses, subject: str) -> CheckResult:
    """Check the key that encrypts objects: hpkit lets its nodes decrypt only with `storage.kmsKeyArn`."""
    subject = f"{subject}, encryption"
    response = responses.of(bucket_encryption(plan))
    if isinstance(response, FailedCall):
        return call_failed(_STORAGE, subject, response)
    key_given = plan.spec.storage.kms_key_arn if plan.spec.storage else None
    defaults = [
        rule.get("ApplyServerSideEncryptionByDefault", {})
        for rule in response["ServerSideEncryptionConfiguration"]["Rules"]
    ]
    keys = [each["KMSMasterKeyID"] for each in defaults if each.get("KMSMasterKeyID")]
    if not keys:
        kind = next((each["SSEAlgorithm"] for each in defaults if "SSEAlgorithm" in each), "AES256")
        return ok(_STORAGE, subject, found=kind, needed="readable by nodes")
    if keys == [key_given]:
        return ok(_STORAGE, subject, found=keys[0], needed="readable by nodes")
    fix = f"Set storage.kmsKeyArn: {keys[0]} (the key's ARN), so that hpkit's role for nodes can decrypt"
    return missing(_STORAGE, subject, found=keys[0], needed=key_given or "storage.kmsKeyArn", fix=fix)
