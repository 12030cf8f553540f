"""Amazon Managed Grafana: workspaces, their users, and tags."""

from hpkit_local.aws.service import Machine, Service, declare

declare(
    Service(
        "grafana",
        refuses_with="ValidationException",
        machines=(
            Machine("grafana", "create", "CREATING", "ACTIVE", "CREATION_FAILED", 180),
            Machine("grafana", "update", "UPDATING", "ACTIVE", "UPDATE_FAILED", 30),
            Machine("grafana", "delete", "DELETING", "", "DELETION_FAILED", 60),
        ),
    )
)
