"""Ownership of an existing object with the same name: it's this program's only with every tag that the program sets.

Creations have no client token, so what a killed run created is found by its name. A name doesn't tell who created it;
the tags that were sent with the creation do. Without tags, nothing does, and nothing is taken over.
"""

from hpkit_provider.aws.client import Document, SageMakerApi, live_tags
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import Props

__all__ = ["require_own"]


def require_own(api: SageMakerApi, call: EngineCall, document: Document, inputs: Props, *, name: str) -> None:
    """Reject an object that someone else created; name: of the resource, such as `ComputeQuota`.

    Raises RejectedError with the command that imports it.
    """
    arn = str(document[f"{name}Arn"])
    own_tags = {tag["key"]: tag["value"] for tag in inputs.get("tags", [])}
    live = {tag["key"]: tag["value"] for tag in live_tags(api, call, arn)}
    if own_tags and own_tags.items() <= live.items():
        return
    called = document.get("Name") or document.get("ClusterName")
    differing = [
        f"{key}={value} (there: {live.get(key, 'none')})"
        for key, value in sorted(own_tags.items())
        if live.get(key) != value
    ]
    why = f"it lacks the tags {', '.join(differing)}" if own_tags else "this program sets no tags that identify it"
    raise RejectedError(
        f"A {name} {called!r} already exists ({arn}), and nothing shows that this stack created it: {why}. It wasn't "
        f"changed. To fix: if it should belong to this stack, run `{_import_command(call.urn, arn)}` (`pulumi "
        "stack --show-urns` prints the URNs), then `pulumi up`. Otherwise choose another name."
    )


def _import_command(urn: str, arn: str) -> str:
    """Return the command that imports a thing as the resource of a URN."""
    parts = urn.split("::")
    types, name = parts[2].split("$"), parts[3]
    stack = parts[0].rpartition(":")[2]
    # A URN has the types of its parents, and not their names.
    parent = " --parent parent=<the parent's URN>" if len(types) > 1 else ""
    options = f"{parent} --provider hyperpod=<the provider's URN>"
    return f"pulumi import --stack {stack} {types[-1]} {name} {arn}{options}"
