"""Repositories of the teams' images in Amazon ECR: an environment's settings for all of them."""

from typing import Annotated

from pydantic import Field

from hpkit.config.models.base import Model, amount

__all__ = ["Registry", "RepositoryName"]

# Amazon ECR API reference, CreateRepository: the pattern of repositoryName.
_NAME = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"

_PATTERN = rf"^(?:{_NAME}|(?:{_NAME}/)?\*)$"
# A team's name of a repository. With the names of stack and team, it must be within ECR's 256 characters.
RepositoryName = Annotated[str, Field(pattern=rf"^{_NAME}$", max_length=128)]


class Registry(Model):
    """Settings for the repositories of all teams in this environment."""

    pull_from: tuple[Annotated[str, Field(pattern=_PATTERN, max_length=256)], ...] = Field(
        default=(),
        description="Other repositories of the account that nodes may pull from, such as `shared/*`. With it, or once "
        "a team has a repository, nodes pull only from the teams' repositories, these, `imageRegistry` and "
        "warm pools. Other accounts aren't affected.",
        examples=["shared/*"],
    )
    keep_images: int | None = amount(
        "Number of newest images to keep per repository. A restarted task pulls its image again. "
        "Default: all with a tag.",
        unit="images",
        default=None,
        example=200,
        ge=1,
    )
    untagged_days: int = amount("Days until an image without a tag is deleted.", unit="days", default=14, ge=1)
