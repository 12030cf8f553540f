"""Names that must be free in the account: roles and buckets that the program creates, and an OIDC issuer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.model import Plan
from hpkit.preflight.calls import bucket_tags, made_buckets, oidc_provider, oidc_provider_arn, role
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.preflight.needs import made_role_names
from hpkit.preflight.usage import UNMARKED, ownership

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

__all__ = ["check_names"]

_AREA: Final = "names"
_RENAME: Final = "Delete it if it's unused, or rename the organization or environment"


def check_names(recording: Recording, responses: Responses) -> Iterator[CheckResult]:
    """Check that no role, bucket and OIDC provider is there that the program would make.

    Sources: IAM API reference, CreateRole and CreateOpenIDConnectProvider (EntityAlreadyExists); S3 API reference,
    CreateBucket (BucketAlreadyExists, BucketAlreadyOwnedByYou).
    """
    plan = recording.plan
    for name in made_role_names(recording):
        yield _role(plan, responses, name)
    for name in made_buckets(plan, responses):
        yield _bucket(plan, responses, name)
    yield from _provider(plan, responses)


def _role(plan: Plan, responses: Responses, name: str) -> CheckResult:
    subject, response = f"name {name} for a role", responses.of(role(name))
    if isinstance(response, FailedCall):
        return _free(subject, response)
    return _taken(plan, responses, subject, response["Role"], fix=_RENAME)


def _bucket(plan: Plan, responses: Responses, name: str) -> CheckResult:
    subject, response = f"name {name} for a bucket", responses.of(bucket_tags(name))
    if isinstance(response, FailedCall) and response.code == "NoSuchTagSet":
        response = {"TagSet": []}
    if isinstance(response, FailedCall):
        return _free(subject, response)
    return _taken(plan, responses, subject, {"Tags": response["TagSet"]}, fix=_RENAME)


def _provider(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check the OIDC provider of an existing cluster: one per issuer, so it is used where it is there."""
    arn = oidc_provider_arn(plan, responses)
    if arn is None or plan.spec.inference is None:
        return
    subject, given_arn = f"OIDC provider of {arn.partition('/')[2]}", plan.spec.inference.oidc_provider_arn
    response = responses.of(oidc_provider(arn))
    if given_arn is None and isinstance(response, FailedCall):
        yield _free(subject, response)
    elif given_arn is None:
        yield _taken(plan, responses, subject, response, fix=f"Use it: inference.oidcProviderArn: {arn}")
    elif given_arn != arn:
        fix = f"If it exists, set inference.oidcProviderArn: {arn}; otherwise remove it"
        yield missing(_AREA, subject, found=given_arn, needed=arn, fix=fix)
    elif isinstance(response, FailedCall) and response.is_absence:
        fix = "Remove inference.oidcProviderArn: hpkit creates the provider"
        yield missing(_AREA, subject, found="missing", needed="exists", fix=fix)
    elif isinstance(response, FailedCall):
        yield call_failed(_AREA, subject, response, needed="exists")
    else:
        yield ok(_AREA, subject, found="exists", needed="exists")


def _free(subject: str, failure: FailedCall) -> CheckResult:
    if failure.is_absence:
        return ok(_AREA, subject, found="free", needed="free")
    return call_failed(_AREA, subject, failure, needed="free")


def _taken(plan: Plan, responses: Responses, subject: str, holder: Mapping[str, Any], *, fix: str) -> CheckResult:
    owner = ownership(plan, responses, {tag["Key"]: tag["Value"] for tag in holder.get("Tags", ())})
    if owner == "own":
        return ok(_AREA, subject, found="this stack's own", needed="free")
    if owner == "unmarked":
        why = "If the stack's state contains it, no action is needed"
        return unknown(_AREA, subject, why=UNMARKED, fix=why, found="exists", needed="free")
    return missing(_AREA, subject, found="taken", needed="free", fix=fix)
