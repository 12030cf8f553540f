"""Which repositories an environment has for its teams' images, and what its nodes pull of its account."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hpkit.config.models.registry import Registry
from hpkit.plan.dependencies import with_registry
from hpkit.plan.lustre import folder_image
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.names import names_of_teams

__all__ = [
    "NEEDED_ENDPOINTS",
    "Repository",
    "is_out_of_reach",
    "lifecycle_policy",
    "pulled_repositories",
    "region_of_registry",
    "repositories_of",
    "repository_prefix",
]

# Amazon ECR user guide, "Amazon ECR interface VPC endpoints": layers come from S3, through its gateway endpoint.
NEEDED_ENDPOINTS: Final = ("ecr.api", "ecr.dkr", "s3")
_IN_ECR: Final = re.compile(
    r"(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[a-z0-9.-]+(?:/(?P<path>.+))?\Z"
)


# Registries whose addresses are only on the internet.
_PUBLIC: Final = frozenset(
    ("docker.io", "gcr.io", "ghcr.io", "mcr.microsoft.com", "nvcr.io", "public.ecr.aws", "quay.io", "registry.k8s.io")
)


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository: its team, its name within the team, and its full name in ECR, which never changes."""

    team: str
    called: str
    name: str

    @property
    def key(self) -> str:
        """Return its name in `allowDelete`, and its name in the program."""
        return f"{self.team}/{self.called}"


def repository_prefix(plan: Plan) -> str:
    """Return the prefix of all repositories of the stack: a region has one registry per account."""
    return f"{names_of_teams(plan.stack, plan.spec).lower()}/"


def repositories_of(plan: Plan, team: TeamPlan | None = None) -> tuple[Repository, ...]:
    """Return the repositories of one team, or of all that have quota in the environment."""
    return tuple(
        Repository(owner.name, called, f"{repository_prefix(plan)}{owner.name}/{called}")
        for owner in (plan.teams if team is None else (team,))
        for called in dict.fromkeys(owner.spec.registry)
    )


def pulled_repositories(plan: Plan, account: str) -> tuple[str, ...] | None:
    """Return the names, with `*` for any, that nodes may pull in the account and its region; None: no limit.

    account: 12 digits. Without repositories of teams and `pullFrom`, nothing is limited. Nor are the nodes
    of an existing cluster.
    """
    spec = plan.spec
    stated = (spec.registry or Registry()).pull_from
    if spec.cluster.existing or not (repositories_of(plan) or stated):
        return None
    named = (f"{repository_prefix(plan)}*", *stated, *_named_elsewhere(plan, account, spec.region))
    return None if "*" in named else tuple(dict.fromkeys(named))


def region_of_registry(name: str) -> str | None:
    """Return the region of a private registry in ECR, or None."""
    found = _IN_ECR.match(name)
    return found["region"] if found else None


def is_out_of_reach(image: str, region: str) -> bool:
    """Return whether nodes in a closed network can't pull an image: it's on the internet, or in another region's ECR.

    Source: Amazon ECR user guide, "Amazon ECR interface VPC endpoints": they reach no public repository.
    """
    return with_registry(image).partition("/")[0] in _PUBLIC or region_of_registry(image) not in (None, region)


def _named_elsewhere(plan: Plan, account: str, region: str) -> Iterator[str]:
    """Yield the repositories of the account that other settings make nodes pull from."""
    registry = plan.spec.cluster.dependencies.image_registry if plan.spec.cluster.dependencies else None
    mirror = _path_in(registry, account, region)
    if mirror is not None:
        yield f"{mirror}/*" if mirror else "*"
    warm = [pool.spec.warm_pool.image for pool in plan.node_pools if pool.spec.warm_pool is not None]
    for reference in (*warm, folder_image(plan.spec)):
        if image := _path_in(reference, account, region):
            yield re.split(r"[:@]", image)[0]


def _path_in(reference: str | None, account: str, region: str) -> str | None:
    """Return the part of a reference behind the account's registry in a region; None for another registry."""
    match = _IN_ECR.match(reference or "")
    if match is None or (match["account"], match["region"]) != (account, region):
        return None
    return (match["path"] or "").rstrip("/")


def lifecycle_policy(plan: Plan) -> str:
    """Return the lifecycle policy of every repository, as ECR takes it (user guide, lifecycle policy properties)."""
    registry = plan.spec.registry or Registry()
    rules: list[dict[str, Any]] = [
        _expiry(
            1,
            f"Images without a tag expire after {registry.untagged_days} days",
            tagStatus="untagged",
            countType="sinceImagePushed",
            countUnit="days",
            countNumber=registry.untagged_days,
        )
    ]
    if registry.keep_images is not None:
        rules.append(
            _expiry(
                2,
                f"Only the newest {registry.keep_images} images are kept",
                tagStatus="any",
                countType="imageCountMoreThan",
                countNumber=registry.keep_images,
            )
        )
    return json.dumps({"rules": rules}, sort_keys=True)


def _expiry(priority: int, description: str, **selection: object) -> dict[str, Any]:
    return {"rulePriority": priority, "description": description, "selection": selection, "action": {"type": "expire"}}
