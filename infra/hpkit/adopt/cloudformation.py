"""The resources of CloudFormation stacks, and the steps that remove some from a stack without deleting them.

It doesn't read or change templates. Users edit them, and change sets show whether the edit is right.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from hpkit.adopt.handover_model import ManagedResource, Step, When, string
from hpkit.errors import InputError

__all__ = ["STACK", "cloudformation_steps", "is_handler", "nested", "read_cloudformation", "read_stacks"]

STACK = "AWS::CloudFormation::Stack"
_RETAIN, _RELEASE = "hpkit-retain", "hpkit-let-go"
_GONE = frozenset({"DELETE_COMPLETE", "DELETE_SKIPPED"})
_ASK = "`aws cloudformation describe-stack-resources --stack-name …` writes the expected format for one stack"


def read_cloudformation(text: str, *, stack: str = "", file: str = "the stacks' resources") -> list[ManagedResource]:
    """Return the resources of stacks, from output of the AWS CLI: one document, or a list of them for nested stacks.

    Accepts describe-stack-resources and list-stack-resources. The second doesn't contain the stack's name, so each
    document needs a StackName next to the resources, unless stack is given. Raises InputError for anything else.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InputError(f"{file}: not JSON ({error}); {_ASK}") from None
    owned: list[ManagedResource] = []
    for answer in data if isinstance(data, list) else [data]:
        rows = _rows(answer, file)
        for row in rows:
            name = string(row, "StackName") or string(answer, "StackName") or stack
            if not name:
                raise InputError(f"{file}: doesn't show which stack contains {row.get('LogicalResourceId')}; {_ASK}")
            owned += _owned(_stack_name(name), row, file)
    if not owned:
        raise InputError(f"{file}: contains no resource of a stack; {_ASK}")
    return sorted(set(owned), key=lambda each: each.address)


def _rows(answer: object, file: str) -> list[dict[str, Any]]:
    rows = None
    if isinstance(answer, dict):
        rows = answer.get("StackResources", answer.get("StackResourceSummaries"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{file}: not the resources of a stack; {_ASK}")
    return rows


def read_stacks(client: Any, stack: str) -> list[ManagedResource]:
    """Return the resources of a live stack and of its nested stacks. Raises the CloudFormation client's errors."""
    owned: list[ManagedResource] = []
    waiting, seen = [stack], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for page in client.get_paginator("list_stack_resources").paginate(StackName=name):
            for row in page["StackResourceSummaries"]:
                found = _owned(_stack_name(name), row, name)
                owned += found
                waiting += [string(row, "PhysicalResourceId") for each in found if each.type == STACK and each.ids]
    return sorted(set(owned), key=lambda each: each.address)


def _stack_name(name: str) -> str:
    """Return a stack's name from its name or ARN (arn:…:stack/NAME/uuid)."""
    return name.split("/")[1] if name.startswith("arn:") and name.count("/") > 1 else name


def _owned(stack: str, row: Mapping[str, Any], file: str) -> list[ManagedResource]:
    logical, resource_type = string(row, "LogicalResourceId"), string(row, "ResourceType")
    if not logical or not resource_type:
        raise InputError(f"{file}: a resource without LogicalResourceId or ResourceType; {_ASK}")
    if row.get("ResourceStatus") in _GONE:
        return []
    return [
        ManagedResource(
            "cloudformation", f"{stack}/{logical}", resource_type, frozenset(_ids(string(row, "PhysicalResourceId")))
        )
    ]


def _ids(physical: str) -> Iterator[str]:
    """Yield a physical id, and one of several parts joined the ways that `pulumi import` joins them.

    CloudFormation joins the parts of a primary identifier with `|`, in an order that differs from type to type
    (docs.aws.amazon.com/cloudcontrolapi/latest/userguide/resource-identifier.html).
    """
    parts = physical.split("|")
    if len(parts) == 1 and physical:
        yield physical
    if len(parts) > 1:
        yield from (part for part in parts if not part.startswith("arn:"))
        # No import id begins with an ARN, and what begins with one must be a whole one.
        orders = [order for order in permutations(parts) if not order[0].startswith("arn:")]
        yield from (separator.join(order) for order in orders for separator in ":,_/")
    association = re.fullmatch(r"arn:[^|]*:podidentityassociation/([^/|]+)/([^/|]+)", physical)
    if association:
        yield ",".join(association.groups())


def is_handler(owned: ManagedResource) -> bool:
    """Return whether this is a custom resource: its deletion calls its Lambda function, whose effect is unknown."""
    return owned.type.startswith("Custom::") or owned.type == "AWS::CloudFormation::CustomResource"


def nested(owned: Sequence[ManagedResource]) -> dict[str, ManagedResource]:
    """Return the resource that represents each nested stack, by that stack's name."""
    return {_stack_name(identifier): each for each in owned if each.type == STACK for identifier in each.ids}


def _depth(stack: str, above: Mapping[str, ManagedResource]) -> int:
    depth, seen = 0, {stack}
    while stack in above and above[stack].stack not in seen:
        stack = above[stack].stack
        seen.add(stack)
        depth += 1
    return depth


def _root(stack: str, above: Mapping[str, ManagedResource]) -> str:
    seen = set()
    while stack in above and stack not in seen:
        seen.add(stack)
        stack = above[stack].stack
    return stack


def cloudformation_steps(
    released: Sequence[ManagedResource], *, kept: Sequence[ManagedResource], above: Mapping[str, ManagedResource]
) -> list[Step]:
    """Return the steps that release resources from stacks: retain them first, then remove them; nested stacks first.

    kept: all other resources of the stacks. The custom resources among them are retained, too.

    Retain keeps a resource when it is removed from a stack or when the stack is deleted, without calling its Delete.
    Source: AWS CloudFormation template reference, "DeletionPolicy attribute". Retain changes nothing that is live, so
    it precedes the import. The removal follows the import and precedes the first `pulumi up`, as with Terraform.
    """
    if not released:
        return []
    roots = {_root(each.stack, above) for each in released}
    handlers = [each for each in kept if is_handler(each) and _root(each.stack, above) in roots]
    full = {each.stack for each in (*kept, *above.values())}
    stacks = sorted({each.stack for each in (*released, *handlers)}, key=lambda name: (-_depth(name, above), name))
    steps = [Step("before import", _PROTECT, tuple(_protect(root) for root in sorted(roots)))]
    if above:
        steps.append(Step("before import", _NESTED))
    for stack in stacks:
        ours = [each.logical_id for each in released if each.stack == stack]
        lambdas = [each.logical_id for each in handlers if each.stack == stack]
        steps += _retain(stack, ours, lambdas)
    for stack in stacks:
        ours = [each.logical_id for each in released if each.stack == stack]
        if ours:
            steps += _remove(stack, ours, empty=stack not in full)
    steps.append(Step("after import", _OTHERWISE, tuple(_policies([*released, *handlers], above))))
    return steps


_PROTECT = "Protect the stacks from deletion; the root's protection covers its nested stacks."
# docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/: using-cfn-nested-stacks.html,
# change-sets-for-nested-stacks.html, using-cfn-protect-stacks.html, protect-stack-resources.html
_NESTED = """\
These stacks are nested. AWS recommends that you update nested stacks from their root, but accepts a change set at any
level. The root names its nested templates by URL and reads them again whenever it is updated. The console's templates
are in a bucket of AWS and change there, so an update from the root can make unexpected changes. Choose one way:
- Put the templates edited below into your own bucket, name them in the root's TemplateURL, and make one change set of
  the root with --include-nested-stacks.
- Update each nested stack itself, as below. Never update the root from its old template again: that would remove the
  Retain."""
_OTHERWISE = """\
If many parts of the template refer to a resource, you can keep its record in the stack for now. Retain and the
deletion protection stay, and these policies refuse every update that would touch it.
A policy only applies to updates, and a stack has one policy: `get-stack-policy` shows what this replaces."""


def _protect(root: str) -> str:
    command = ["aws", "cloudformation", "update-termination-protection", "--enable-termination-protection"]
    return shlex.join([*command, "--stack-name", root])


def _file(stack: str, end: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", stack) + end


def _retain(stack: str, ours: Sequence[str], lambdas: Sequence[str]) -> list[Step]:
    # Parameters that an update does not name go back to their defaults, so all are named.
    previous = (
        "not_null(Stacks[0].Parameters, `[]`)[].{ParameterKey: ParameterKey, UsePreviousValue: `true`}"  # a JMESPath
    )
    base, name = ["aws", "cloudformation"], ["--stack-name", stack]
    template = shlex.quote(_file(stack, ".template"))
    fetch = (
        shlex.join([*base, "get-template", *name, "--query", "TemplateBody", "--output", "text"]) + f" > {template}",
        shlex.join([*base, "describe-stacks", *name, "--query", previous, "--output", "json"])
        + f" > {shlex.quote(_file(stack, '.parameters.json'))}",
    )
    say = f"{stack}: write its template and parameters to files (a JSON template: --output json)."
    edit = (
        f"{stack}: in the template, set `DeletionPolicy: Retain` and `UpdateReplacePolicy: Retain` on "
        f"{', '.join([*ours, *lambdas])}."
    )
    if lambdas:
        edit += (
            f" {', '.join(lambdas)}: a Lambda function creates it. Deleting it calls that function, which may undo "
            "its work (uninstall a Helm chart, remove the lifecycle script)."
        )
    edit += (
        " The change set must contain only these resources, each with Scope DeletionPolicy or UpdateReplacePolicy. "
        "(Upload a template over 51,200 bytes to S3, and pass its URL in --template-url.)"
    )
    return [Step("before import", say, fetch), *_change(stack, _RETAIN, edit)]


def _change(stack: str, label: str, say: str) -> list[Step]:
    """Return the creation of a change set and its execution as two steps, so that a person reads it in between."""
    base, name = ["aws", "cloudformation"], ["--stack-name", stack]
    change = [*name, "--change-set-name", label]
    capabilities = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
    files = ["--template-body", f"file://{_file(stack, '.template')}"]
    files += ["--parameters", f"file://{_file(stack, '.parameters.json')}"]
    fields = "Changes[].ResourceChange.{id: LogicalResourceId, action: Action, policy: PolicyAction, scope: Scope}"
    make = (
        shlex.join([*base, "create-change-set", *change, *files, "--capabilities", *capabilities]),
        shlex.join([*base, "wait", "change-set-create-complete", *change]),
        shlex.join([*base, "describe-change-set", *change, "--query", fields]),
    )
    execute = (
        shlex.join([*base, "execute-change-set", *change]),
        shlex.join([*base, "wait", "stack-update-complete", *name]),
    )
    when: When = "before import" if label == _RETAIN else "after import"
    return [
        Step(when, say, make),
        Step(when, f"{stack}: continue only if the change set shows exactly these changes.", execute),
    ]


def _remove(stack: str, ours: Sequence[str], *, empty: bool) -> list[Step]:
    is_single = len(ours) == 1
    say = (
        f"{stack}: remove {', '.join(ours)} from the template, and replace each Ref and GetAtt that refers to "
        f"{'it' if is_single else 'them'} with a plain value."
    )
    if empty:
        say += (
            " The stack would be empty, which CloudFormation doesn't accept: add an "
            "AWS::CloudFormation::WaitConditionHandle, which creates nothing."
        )
    say += f" The change set must show Remove with policy Retain for {'it' if is_single else 'each'}."
    return _change(stack, _RELEASE, say)


def _policies(released: Sequence[ManagedResource], above: Mapping[str, ManagedResource]) -> Iterator[str]:
    """Yield one policy per stack, because a nested stack's policy doesn't prevent its parent from deleting it."""
    denied: dict[str, dict[str, str]] = {}
    for resource in released:
        denied.setdefault(resource.stack, {})[resource.logical_id] = "Update:*"
        stack, seen = resource.stack, {resource.stack}
        while stack in above and above[stack].stack not in seen:
            holder = above[stack]
            denied.setdefault(holder.stack, {}).setdefault(holder.logical_id, "Update:Delete")
            stack = holder.stack
            seen.add(stack)
    for stack, rules in sorted(denied.items(), key=lambda item: (-_depth(item[0], above), item[0])):
        statements = [{"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"}]
        statements += [
            {"Effect": "Deny", "Principal": "*", "Action": action, "Resource": f"LogicalResourceId/{logical}"}
            for logical, action in sorted(rules.items())
        ]
        body = json.dumps({"Statement": statements}, separators=(",", ":"))
        yield shlex.join(
            ["aws", "cloudformation", "set-stack-policy", "--stack-name", stack, "--stack-policy-body", body]
        )
