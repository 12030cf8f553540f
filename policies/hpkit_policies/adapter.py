"""Converts the pack's policies to Pulumi SDK policies: values, levels, waivers."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi_policy as sdk
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UnknownValueError

from hpkit.text.printable import printable, printable_lines
from hpkit_policies.model import (
    POLICY_FILE,
    UNKNOWN,
    Policy,
    Resource,
    Settings,
    Undecided,
    Violation,
    is_known,
    unknown_as_undecided,
)
from hpkit_policies.waivers import WAIVERS, RunState

__all__ = ["plain", "to_pulumi"]

_OWN = "hyperpod:"


def to_pulumi(policy: Policy, run_state: RunState) -> sdk.Policy:
    """Return a policy in the SDK's form; the run's state, which has the waivers, filters its violations."""
    shared: dict[str, Any] = {
        "name": policy.name,
        "description": policy.description,
        "enforcement_level": sdk.EnforcementLevel(policy.level),
        "config_schema": _schema(policy),
    }
    if policy.validate_stack is not None:
        return sdk.StackValidationPolicy(validate=_stack_validation(policy, run_state), **shared)
    remediate = _remediation(policy) if policy.remediate else None
    return sdk.ResourceValidationPolicy(validate=_resource_validation(policy, run_state), remediate=remediate, **shared)


def plain(value: Any) -> Any:
    """Return a value of the SDK as plain data: UNKNOWN in place of an error, whole numbers as integers."""
    if isinstance(value, Mapping):
        return {key: _item(value, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_item(value, index) for index in range(len(value))]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _item(container: Any, key: Any) -> Any:
    try:
        return plain(container[key])
    except UnknownValueError:
        return UNKNOWN


def _schema(policy: Policy) -> sdk.PolicyConfigSchema | None:
    parameters = (*policy.parameters, *((WAIVERS,) if policy.waivable else ()))
    return sdk.PolicyConfigSchema(
        {
            parameter.name: {**parameter.schema, "description": parameter.description, "default": parameter.default}
            for parameter in parameters
        }
    )


def _settings(policy: Policy, config: Mapping[str, Any]) -> Settings:
    return {**policy.defaults, **plain(config)}


def _resource_validation(policy: Policy, run_state: RunState) -> Callable[[sdk.ResourceValidationArgs, Any], None]:
    def validate(args: sdk.ResourceValidationArgs, report: sdk.ReportViolation) -> None:
        settings = _settings(policy, args.get_config())
        run_state.observe(policy, settings)
        resource = _resource(args)
        run_state.inputs[resource.urn] = resource.props
        if policy.validate is None or not policy.applies_to(args.resource_type):
            return
        found = run_state.not_waived(policy, unknown_as_undecided(policy.validate(resource, settings)), resource)
        _report(policy, found, report, run_state)

    return validate


def _stack_validation(policy: Policy, run_state: RunState) -> Callable[[sdk.StackValidationArgs, Any], None]:
    def validate(args: sdk.StackValidationArgs, report: sdk.ReportViolation) -> None:
        settings = _settings(policy, args.get_config())
        run_state.observe(policy, settings)
        if policy.validate_stack is None:
            return
        resources = [_with_inputs(_resource(each), run_state.inputs.get(each.urn, {})) for each in args.resources]
        found = unknown_as_undecided(policy.validate_stack(resources, settings))
        _report(policy, run_state.not_waived(policy, found, None), report, run_state)

    return validate


def _remediation(policy: Policy) -> Callable[[sdk.ResourceValidationArgs], Any]:
    def remediate(args: sdk.ResourceValidationArgs) -> Any:
        if policy.remediate is None or not policy.applies_to(args.resource_type):
            return None
        corrected = policy.remediate(_resource(args), _settings(policy, args.get_config()))
        if not corrected:
            return None
        # Set in place, so that inputs that the policy doesn't change keep their secrets and unknown values.
        props: Any = args.props
        for name, value in corrected.items():
            props[name] = value
        return props

    return remediate


def _resource(args: sdk.ResourceValidationArgs | sdk.PolicyResource) -> Resource:
    dependency_args: dict[str, Any] = {}
    if isinstance(args, sdk.PolicyResource):
        dependency_args["dependencies"] = tuple(dependency.urn for dependency in args.dependencies)
        dependency_args["property_dependencies"] = {
            name: tuple(dependency.urn for dependency in sources)
            for name, sources in args.property_dependencies.items()
        }
    return Resource(
        type=args.resource_type,
        name=args.name,
        urn=args.urn,
        props=plain(args.props),
        protect=args.opts.protect,
        ignored=tuple(args.opts.ignore_changes),
        provider=plain(args.provider.props) if args.provider else {},
        **dependency_args,
    )


def _with_inputs(resource: Resource, inputs: Mapping[str, Any]) -> Resource:
    """Return a resource with its inputs wherever an output isn't known.

    At preview, the engine shows no outputs of a provider whose configuration comes from another resource. The
    Kubernetes provider is one: its configuration comes from the EKS cluster. Inputs of the `hyperpod` package take
    precedence over its outputs, because a property that is never compared, such as elasticInstanceTypes, keeps its old
    output.
    """
    known_outputs = {name: value for name, value in resource.props.items() if value is not UNKNOWN}
    stated = (
        {name: value for name, value in inputs.items() if is_known(value)} if resource.type.startswith(_OWN) else {}
    )
    return replace(resource, props={**resource.props, **inputs, **known_outputs, **stated}, inputs=inputs)


def _inert(text: str) -> str:
    """Return a message on one line, without anything that a terminal or a workflow interprets.

    Names and properties come from users' programs, and the engine prints them unchanged, on a separate line.
    """
    return printable_lines(printable(text))


def _policy_file(urns: Iterable[str]) -> str:
    """Return the policy file of the running stack, from its configuration or from its name in the first URN.

    Some language hosts pass the stack's configuration to the pack, others don't. Every URN names the stack:
    urn:pulumi:<stack>::<project>::….
    """
    stated = json.loads(os.environ.get("PULUMI_CONFIG") or "{}").get("hpkit:organization")
    stack = next(iter(urns), "").removeprefix("urn:pulumi:").partition("::")[0]
    organization = stated or stack.rpartition("-")[0]
    return POLICY_FILE.replace("<organization>", organization) if organization else POLICY_FILE


def _report(
    policy: Policy, found: Iterable[Violation | Undecided], report: sdk.ReportViolation, run_state: RunState
) -> None:
    undecided: list[str] = []
    for item in found:
        if isinstance(item, Undecided):
            undecided.append(_inert(item.message))
        else:
            fix = policy.advice(item.fix).replace(POLICY_FILE, _policy_file(run_state.inputs))
            report(_inert(f"{item.message}. {fix}"), item.resource.urn if item.resource else None)
    if undecided:
        # The SDK's way to report this: it becomes advice, regardless of the policy's level.
        unknown = UnknownValueError(UNKNOWN_OBJECT_VALUE, [])
        unknown.message = f"{'; '.join(undecided)}. The policy is checked when `pulumi up` knows it"
        raise unknown
