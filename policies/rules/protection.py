"""What must not be replaced by accident: the HyperPod cluster, the EKS cluster, the VPC.

Does not: see a replacement. The engine shows policies what will be, and neither the operation nor what was before.
It refuses itself to replace a resource that was protected and still is: so these three must be protected. In the
kit's own program a ChangeGuard refuses before that, and its allowance is the organization's to give.
"""

from typing import Final

from policies.model import Parameter, Policy, Resource, Results, Settings, Violation
from policies.stack_inputs import CLUSTER

__all__ = ["POLICIES"]

# Type of the resource → the word that `allowReplace` takes for it, as in an organization's file.
_GUARDED: Final = {CLUSTER: "cluster", "aws:eks/cluster:Cluster": "eks", "aws:ec2/vpc:Vpc": "vpc"}
_GUARD: Final = "hyperpod:index:ChangeGuard"
_WORDS: Final = ("bucket", "cluster", "eks", "fileSystem", "key", "vpc")
_ALLOW = Parameter(
    "allowReplace",
    f"What may be left unprotected, or be replaced by the word of an organization's file: {', '.join(_WORDS)}.",
    {"type": "array", "items": {"enum": list(_WORDS)}},
    [],
)


def _protected(resource: Resource, settings: Settings) -> Results:
    if resource.type == _GUARD:
        yield from _guarded(resource, settings)
        return
    word = _GUARDED[resource.type]
    if not resource.protect and word not in settings[_ALLOW.name]:
        yield Violation(
            f"{resource.name} is not protected: a change of the wrong input would replace it, and all that runs on it",
            f"Set the option protect, or list `{word}` in {_ALLOW.name} for as long as it is to be replaced.",
        )


def _guarded(guard: Resource, settings: Settings) -> Results:
    allowed = guard.get("allowReplace", [])
    subject = guard.get_or_unknown("subject")
    for word in allowed if isinstance(allowed, list) else []:
        if word not in settings[_ALLOW.name]:
            yield Violation(
                f"{guard.name} lets {word} of {subject if isinstance(subject, str) else 'this stack'} be replaced",
                f"Take it out of allowReplace of the environment, or list `{word}` in {_ALLOW.name} of this policy.",
            )


POLICIES = (
    Policy(
        name="protected-from-replacement",
        description="HyperPod cluster, EKS cluster and VPC are protected, so that the engine refuses to replace them, "
        "and no guard lets them be replaced.",
        types=(*_GUARDED, _GUARD),
        validate=_protected,
        parameters=(_ALLOW,),
    ),
)
