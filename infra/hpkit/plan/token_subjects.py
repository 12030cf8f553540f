"""Which identities the subject of a web identity token names; the validator and the policy pack compare trust with it.

Only this module knows the subjects of forges.
"""

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["names_branch", "names_subject"]

# What others than one branch can claim is no identity: an environment, a tag, a pull request, a pattern. Sources:
# GitHub's documentation, "OpenID Connect reference"; GitLab's, "OpenID Connect (OIDC) authentication".
_BRANCHES: Final[Mapping[str, re.Pattern[str]]] = {
    "token.actions.githubusercontent.com": re.compile(
        r"repo:[^/:*?]+/[^/:*?]+(?::environment:[^:*?]+)?:ref:refs/heads/[^:*?]+"
    ),
    "gitlab": re.compile(r"project_path:[^:*?]+:ref_type:branch:ref:[^:*?]+"),
}
# Prefixes of identities in the subjects of known issuers.
_SUBJECT_WORDS: Final = re.compile(r"^(?:system:serviceaccount:|repo:|project_path:)")


def names_subject(value: str) -> bool:
    """Return whether a subject contains an organization or a namespace before its first wildcard."""
    return bool(re.match(r"[^:/*?]+(?:[:/]|$)", _SUBJECT_WORDS.sub("", value)))


def names_branch(issuer: str, subject: str) -> bool:
    """Return whether a forge's subject is limited to one branch; other issuers have no branches."""
    pattern = next((pattern for forge, pattern in _BRANCHES.items() if issuer.startswith(forge)), None)
    return pattern is None or bool(pattern.fullmatch(subject))
