"""Amazon EKS: clusters, add-ons, access entries and pod identity associations."""

from hpkit_local.aws.service import Machine, Service, declare

declare(
    Service(
        "eks",
        rejects_with="InvalidParameterException",
        machines=(
            Machine("eks", "create", "CREATING", "ACTIVE", "FAILED", 720),
            Machine("eks", "update", "UPDATING", "ACTIVE", "ACTIVE", 120),
            Machine("eks", "delete", "DELETING", "", "FAILED", 180),
            Machine("addon", "create", "CREATING", "ACTIVE", "CREATE_FAILED", 60),
            Machine("addon", "update", "UPDATING", "ACTIVE", "UPDATE_FAILED", 45),
            Machine("addon", "delete", "DELETING", "", "DELETE_FAILED", 30),
        ),
        faults={
            "late-logs": "seconds after the deletion of an EKS cluster when its last logs arrive and create its log "
            "group again",
        },
    )
)
