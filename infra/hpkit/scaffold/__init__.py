"""A project of one's own: the files that `hpkit init` writes."""

from hpkit.scaffold.files import EXAMPLES, PIPELINES, Choice, accounts_of, first_environment, project_files

__all__ = ["EXAMPLES", "PIPELINES", "Choice", "accounts_of", "first_environment", "project_files"]
