"""Amazon Managed Service for Prometheus: workspaces, rules, alert manager."""

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import BY_ARN, creating, deleting, found, in_map, reading, settled
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_FAILED: Final = ("CREATION_FAILED", "UPDATE_FAILED")
_workspace = found("DescribeWorkspace", "workspace", "workspaceId")


def _logging(call: Calls, workspace: str) -> dict[str, Any] | None:
    answer = call.find("DescribeLoggingConfiguration", workspaceId=workspace) or {}
    return answer.get("loggingConfiguration")


def _read_logging(call: Calls, workspace: str, _entry: Any) -> Props:
    logging = _logging(call, workspace)
    return {"loggingConfiguration": {"logGroupArn": logging["logGroupArn"]} if logging else None}


def _update_workspace(call: Calls, workspace: str, change: PlannedUpdate) -> None:
    if "alias" in change:
        call("UpdateWorkspaceAlias", workspaceId=workspace, alias=change.new.get("alias", ""))
    if "loggingConfiguration" not in change:
        return
    new_logging = change.new.get("loggingConfiguration")
    if not new_logging:
        call("DeleteLoggingConfiguration", workspaceId=workspace)
        return
    operation = "UpdateLoggingConfiguration" if _logging(call, workspace) else "CreateLoggingConfiguration"
    call(operation, workspaceId=workspace, logGroupArn=new_logging["logGroupArn"])


def _namespace(arn: str, _state: Props) -> dict[str, str]:
    _, workspace, name = arn.rpartition(":")[2].split("/")
    return {"workspaceId": workspace, "name": name}


_rules = found("DescribeRuleGroupsNamespace", "ruleGroupsNamespace", _namespace)


def _update_rules(call: Calls, arn: str, change: PlannedUpdate) -> None:
    call("PutRuleGroupsNamespace", **_namespace(arn, {}), data=change.new["data"].encode())


_alerts = found("DescribeAlertManagerDefinition", "alertManagerDefinition", "workspaceId")


def _update_alerts(call: Calls, workspace: str, change: PlannedUpdate) -> None:
    call("PutAlertManagerDefinition", workspaceId=workspace, data=change.new["definition"].encode())


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:amp/workspace:Workspace",
        props=properties(
            "alias kmsKeyArn loggingConfiguration:object", loggingConfiguration=properties("logGroupArn!")
        ),
        other_calls="CreateLoggingConfiguration UpdateLoggingConfiguration DeleteLoggingConfiguration",
        create=creating("CreateWorkspace", "alias kmsKeyArn", made="workspaceId", tags=in_map, style=dict),
        read=reading(_workspace, "arn alias kmsKeyArn prometheusEndpoint", _read_logging),
        update=_update_workspace,
        wait=settled(_workspace, ["ACTIVE"], _FAILED),
        later=("loggingConfiguration",),
        delete=deleting("DeleteWorkspace", "workspaceId", look=_workspace),
        outputs=("arn", "prometheusEndpoint"),
        tagging=BY_ARN,
        minutes=(5, 5, 5),
    ),
    ResourceType(
        "aws:amp/ruleGroupNamespace:RuleGroupNamespace",
        props=properties("workspaceId! name data!"),
        create=creating(
            "CreateRuleGroupsNamespace",
            "workspaceId name",
            made="arn",
            tags=in_map,
            style=dict,
            also=lambda inputs: {"data": inputs["data"].encode()},
        ),
        read=reading(_rules, "arn", lambda _call, arn, entry: {**_namespace(arn, {}), "data": entry["data"].decode()}),
        update=_update_rules,
        wait=settled(_rules, ["ACTIVE"], _FAILED),
        delete=deleting("DeleteRuleGroupsNamespace", _namespace, look=_rules),
        outputs=("arn",),
        tagging=BY_ARN,
        minutes=(5, 5, 5),
    ),
    ResourceType(
        "aws:amp/alertManagerDefinition:AlertManagerDefinition",
        props=properties("workspaceId! definition!"),
        create=creating(
            "CreateAlertManagerDefinition",
            "workspaceId",
            made="{workspaceId}",
            style=dict,
            also=lambda inputs: {"data": inputs["definition"].encode()},
        ),
        read=reading(
            _alerts,
            "",
            lambda _call, workspace, entry: {"workspaceId": workspace, "definition": entry["data"].decode()},
        ),
        update=_update_alerts,
        wait=settled(_alerts, ["ACTIVE"], _FAILED),
        delete=deleting("DeleteAlertManagerDefinition", "workspaceId"),
        minutes=(5, 5, 5),
    ),
)
