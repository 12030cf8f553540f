"""Repositories of the teams' images in Amazon ECR: what an environment says of all of them."""

from typing import Annotated

from pydantic import Field

from hpkit.config.base import Model

__all__ = ["Registry", "RepositoryName"]

# Amazon ECR API reference, CreateRepository: the pattern of repositoryName.
_NAME = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"

_PATTERN = rf"^(?:{_NAME}|(?:{_NAME}/)?\*)$"
# What a team calls a repository. With the names of stack and team before it, it has to be within ECR's 256 characters.
RepositoryName = Annotated[str, Field(pattern=rf"^{_NAME}$", max_length=128)]


class Registry(Model):
    """What holds for the repositories of all teams in this environment."""

    pull_from: tuple[Annotated[str, Field(pattern=_PATTERN, max_length=256)], ...] = Field(
        default=(),
        description="Other repositories of the account that nodes may pull: names, or all below one as `shared/*`. "
        "Once a team has a repository, nodes pull nothing else of the account: the teams' own, these, and where "
        "`imageRegistry` and warm pools say. Other accounts are as before.",
    )
    keep_images: int | None = Field(
        default=None,
        ge=1,
        description="How many images each repository keeps, the newest; a task that begins again pulls its image "
        "again. Absent: all that have a tag.",
    )
    untagged_days: int = Field(default=14, ge=1, description="After how many days an image without a tag is deleted.")
