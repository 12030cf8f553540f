"""Amazon Managed Service for Prometheus: workspaces, rules, alert manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, until
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import BY_ARN
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_FAILED = {"CREATION_FAILED", "UPDATE_FAILED"}


def _settle(call: Calls, look: Callable[[], Any]) -> None:
    until(call, look, status=lambda seen: seen["status"]["statusCode"], ready={"ACTIVE"}, failed=_FAILED)


def _create_workspace(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateWorkspace", alias=inputs.get("alias"), kmsKeyArn=inputs.get("kmsKeyArn"), tags=inputs["tagsAll"] or None
    )
    return str(answer["workspaceId"])


def _workspace(call: Calls, workspace: str) -> dict[str, Any] | None:
    answer = call.find("DescribeWorkspace", workspaceId=workspace)
    return answer and answer["workspace"]


def _read_workspace(call: Calls, workspace: str, _recorded: Props) -> Props | None:
    described = _workspace(call, workspace)
    if described is None or described["status"]["statusCode"] == "DELETING":
        return None
    logging = (call.find("DescribeLoggingConfiguration", workspaceId=workspace) or {}).get("loggingConfiguration")
    return {
        "arn": described["arn"],
        "alias": described.get("alias"),
        "kmsKeyArn": described.get("kmsKeyArn"),
        "prometheusEndpoint": described.get("prometheusEndpoint"),
        "loggingConfiguration": {"logGroupArn": logging["logGroupArn"]} if logging else None,
        "tags": described.get("tags", {}),
    }


def _update_workspace(call: Calls, workspace: str, change: PlannedUpdate) -> None:
    if "alias" in change:
        call("UpdateWorkspaceAlias", workspaceId=workspace, alias=change.new.get("alias", ""))
    if "loggingConfiguration" not in change:
        return
    new_logging = change.new.get("loggingConfiguration")
    if not new_logging:
        call("DeleteLoggingConfiguration", workspaceId=workspace)
        return
    live_logging = (call.find("DescribeLoggingConfiguration", workspaceId=workspace) or {}).get("loggingConfiguration")
    operation = "UpdateLoggingConfiguration" if live_logging else "CreateLoggingConfiguration"
    call(operation, workspaceId=workspace, logGroupArn=new_logging["logGroupArn"])


def _await_workspace(call: Calls, workspace: str, _change: PlannedUpdate) -> None:
    _settle(call, lambda: _workspace(call, workspace))


def _delete_workspace(call: Calls, workspace: str, _state: Props) -> None:
    if call.find("DeleteWorkspace", workspaceId=workspace) is not None:
        until(
            call, lambda: _workspace(call, workspace), status=lambda seen: seen["status"]["statusCode"], until_gone=True
        )


def _create_rules(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateRuleGroupsNamespace",
        workspaceId=inputs["workspaceId"],
        name=inputs["name"],
        data=inputs["data"].encode(),
        tags=inputs["tagsAll"] or None,
    )
    return str(answer["arn"])


def _namespace(arn: str) -> dict[str, str]:
    _, workspace, name = arn.rpartition(":")[2].split("/")
    return {"workspaceId": workspace, "name": name}


def _rules(call: Calls, arn: str) -> dict[str, Any] | None:
    answer = call.find("DescribeRuleGroupsNamespace", **_namespace(arn))
    return answer and answer["ruleGroupsNamespace"]


def _read_rules(call: Calls, arn: str, _recorded: Props) -> Props | None:
    found = _rules(call, arn)
    return found and {**_namespace(arn), "arn": arn, "data": found["data"].decode(), "tags": found.get("tags", {})}


def _update_rules(call: Calls, arn: str, change: PlannedUpdate) -> None:
    call("PutRuleGroupsNamespace", **_namespace(arn), data=change.new["data"].encode())


def _await_rules(call: Calls, arn: str, _change: PlannedUpdate) -> None:
    _settle(call, lambda: _rules(call, arn))


def _delete_rules(call: Calls, arn: str, _state: Props) -> None:
    if call.find("DeleteRuleGroupsNamespace", **_namespace(arn)) is not None:
        until(call, lambda: _rules(call, arn), status=lambda seen: seen["status"]["statusCode"], until_gone=True)


def _create_alerts(call: Calls, inputs: Props) -> str:
    call("CreateAlertManagerDefinition", workspaceId=inputs["workspaceId"], data=inputs["definition"].encode())
    return str(inputs["workspaceId"])


def _alerts(call: Calls, workspace: str) -> dict[str, Any] | None:
    answer = call.find("DescribeAlertManagerDefinition", workspaceId=workspace)
    return answer and answer["alertManagerDefinition"]


def _read_alerts(call: Calls, workspace: str, _recorded: Props) -> Props | None:
    found = _alerts(call, workspace)
    return found and {"workspaceId": workspace, "definition": found["data"].decode()}


def _update_alerts(call: Calls, workspace: str, change: PlannedUpdate) -> None:
    call("PutAlertManagerDefinition", workspaceId=workspace, data=change.new["definition"].encode())


def _await_alerts(call: Calls, workspace: str, _change: PlannedUpdate) -> None:
    _settle(call, lambda: _alerts(call, workspace))


def _delete_alerts(call: Calls, workspace: str, _state: Props) -> None:
    call.find("DeleteAlertManagerDefinition", workspaceId=workspace)


_MINUTES: Final = (5, 5, 5)

RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:amp/workspace:Workspace",
        props=(
            Prop("alias"),
            Prop("kmsKeyArn"),
            Prop("loggingConfiguration", "object", members=(Prop("logGroupArn", required=True),)),
        ),
        other_calls="CreateLoggingConfiguration UpdateLoggingConfiguration DeleteLoggingConfiguration",
        create=_create_workspace,
        read=_read_workspace,
        update=_update_workspace,
        wait=_await_workspace,
        later=("loggingConfiguration",),
        delete=_delete_workspace,
        outputs=("arn", "prometheusEndpoint"),
        tagging=BY_ARN,
        minutes=_MINUTES,
    ),
    ResourceType(
        "aws:amp/ruleGroupNamespace:RuleGroupNamespace",
        props=(
            Prop("workspaceId", required=True),
            Prop("name"),
            Prop("data", required=True),
        ),
        create=_create_rules,
        read=_read_rules,
        update=_update_rules,
        wait=_await_rules,
        delete=_delete_rules,
        outputs=("arn",),
        tagging=BY_ARN,
        minutes=_MINUTES,
    ),
    ResourceType(
        "aws:amp/alertManagerDefinition:AlertManagerDefinition",
        props=(Prop("workspaceId", required=True), Prop("definition", required=True)),
        create=_create_alerts,
        read=_read_alerts,
        update=_update_alerts,
        wait=_await_alerts,
        delete=_delete_alerts,
        minutes=_MINUTES,
    ),
)
