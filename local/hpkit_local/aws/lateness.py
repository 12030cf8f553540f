"""Delays after which AWS applies accepted changes, scaled by the latency factor.

AWS mostly documents no number. Then the time is one that others measured or wait for.
"""

from typing import Final

from hpkit_local.aws.backend import Context, Record

__all__ = ["LATENESS", "LEAST_FACTOR", "LEAST_SECONDS", "is_effective", "late_seconds", "when_effective"]


# Seconds during which something isn't effective after AWS accepted it.
LATENESS: Final = {
    # A new EKS access entry or access policy grants no access. EKS API, CreateAccessEntry: several seconds; a public
    # test harness of Terraform: 30 s to 2 min.
    "access-entry": 30.0,
    # New pods get no credentials from a new Pod Identity association. EKS API, CreatePodIdentityAssociation: several
    # seconds.
    "pod-identity": 5.0,
    # EKS can't use a new KMS key, or a key with a new permission. KMS guide, grants: up to five minutes;
    # terraform-provider-aws issue 49247; in that harness, 4 s sufficed.
    "key-rights": 4.0,
    # Services can't assume a new role. IAM guide, changes aren't always immediately visible; terraform-provider-aws,
    # propagationTimeout of eks.
    "role": 10.0,
    # A `Running` HyperPod node doesn't appear in Kubernetes. awsome-distributed-training, Terraform: polls for nodes up
    # to 30 min.
    "node": 180.0,
}
# From a latency factor of a hundredth on, programs that don't wait must fail, even on a busy machine, where a step
# takes a second. Without its waits, handson-dev came up with half a second, and failed with three.
LEAST_SECONDS: Final = 3.0
LEAST_FACTOR: Final = 0.01


def late_seconds(ctx: Context, name: str) -> float:
    """Return how long something isn't effective here: not at all with latency factor 0."""
    factor = ctx.backend.settings.latency_factor
    seconds = LATENESS[name] * factor
    return max(seconds, LEAST_SECONDS) if factor >= LEAST_FACTOR else seconds


def is_effective(ctx: Context, name: str, since: float, *, at: float | None = None) -> bool:
    """Return whether something that was accepted at a time is effective now, or was at another time."""
    late = late_seconds(ctx, name)
    # moto's times are those of the wall clock, which can differ from the endpoint's.
    return not late or since + late <= (ctx.now if at is None else at)


def when_effective(ctx: Context, name: str, action: str, /, **args: object) -> None:
    """Set a timer for the moment when something accepted now becomes effective."""
    seconds = late_seconds(ctx, name)
    if seconds:
        record: Record = dict(args)
        ctx.backend.later(ctx, seconds, action, record)
