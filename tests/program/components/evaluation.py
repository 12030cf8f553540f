"""The responses of the admission policies to a request, evaluated in CEL like the API server, without a server."""

from functools import cache

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from hpkit.plan.names import GROUP_PREFIX

__all__ = ["answers", "request_of"]

_RESOURCES = {"Ingress": "ingresses"}


@cache
def _environment():
    names = ("object", "oldObject", "request", "variables")
    return cel.NewEnv(
        variables=dict.fromkeys(names, cel.Type.DYN), extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()]
    )


@cache
def _program(expression):
    return _environment().compile(expression)


def _value(expression, data):
    return _program(expression).eval(data=data).plain_value()


def request_of(document, *, operation="CREATE", team="john", member=True, options=None):
    """Return the request for a document, as an admission policy receives it."""
    group, _, version = document["apiVersion"].rpartition("/")
    resource = _RESOURCES.get(document["kind"], document["kind"].lower() + "s")
    groups = ["system:authenticated", *([f"{GROUP_PREFIX}{team}"] if member else [])]
    return {
        "operation": operation,
        "namespace": f"hyperpod-ns-{team}",
        "kind": {"group": group, "version": version, "kind": document["kind"]},
        "resource": {"group": group, "version": version, "resource": resource},
        "userInfo": {"groups": groups},
        **({"options": options} if options is not None else {}),
    }


def answers(policies, request, document, before=None):
    """Return the fields that are rejected by the policies that match a request."""
    fields = []
    for policy in policies:
        if request["operation"] not in policy.operations or not _matches(policy, request):
            continue
        deleted = request["operation"] == "DELETE"
        data = {
            "object": None if deleted else document,
            "oldObject": document if deleted else before,
            "request": request,
            "variables": {},
        }
        if not all(_value(condition, data) is True for condition in policy.conditions.values()):
            continue
        for name, expression in policy.variables.items():
            data["variables"] = {**data["variables"], name: _value(expression, data)}
        # An evaluation error is a rejection, because the policies fail closed.
        fields += [refusal.field for refusal in policy.rejections if _value(refusal.expression, data) is not True]
    return fields


def _matches(policy, request):
    group, resource = request["resource"]["group"], request["resource"]["resource"]
    # As the API server matches resources: "*" is none of the subresources, "*/scale" is one of every resource.
    _, slash, subresource = resource.partition("/")
    wanted = {resource, f"*{slash}{subresource}"}
    return any(group in rule.groups and wanted.intersection(rule.resources) for rule in policy.rules)
