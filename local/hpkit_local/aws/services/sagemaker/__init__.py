"""SageMaker HyperPod on EKS: clusters, nodes, compute quotas and cluster policies."""

from hpkit_local.aws.service import Machine, Service, declare

declare(
    Service(
        "sagemaker",
        rejects_with="ValidationException",
        scope=r"Cluster|ComputeQuota|TrainingPlan|^(Add|Delete|List)Tags$",
        # "Creating a SageMaker HyperPod cluster with EKS": 10 to 25 minutes; "Continuous provisioning".
        machines=(
            Machine("cluster", "create", "Creating", "InService", "Failed", 1200),
            Machine("cluster", "update", "Updating", "InService", "Failed", 120),
            Machine("cluster", "software", "SystemUpdating", "InService", "Failed", 900),
            Machine("cluster", "delete", "Deleting", "", "Failed", 600),
            Machine("group", "create", "Creating", "InService", "Failed", 120),
            Machine("autoscaling", "create", "Creating", "InService", "Failed", 180),
            Machine("autoscaling", "delete", "Deleting", "", "Failed", 60),
            Machine("node", "create", "Pending", "Running", "Failure", 240),
            Machine("node", "deep-health-check", "DeepHealthCheckInProgress", "Running", "Failure", 5400),
            Machine("node", "reboot", "Pending", "Running", "Failure", 180),
            Machine("node", "delete", "ShuttingDown", "", "Failure", 120),
            *(
                machine
                for kind in ("quota", "policy")
                for machine in (
                    Machine(kind, "create", "Creating", "Created", "CreateFailed", 20),
                    Machine(kind, "update", "Updating", "Updated", "UpdateFailed", 15),
                    Machine(kind, "delete", "Deleting", "", "DeleteFailed", 20),
                )
            ),
        ),
        faults={
            "capacity": "maximum number of nodes that an instance group gets",
            "instance-quota": "maximum number of instances of a type that the clusters of the account may have",
            "failed-software": "probability that new images of instance groups are rolled back",
            "node-failure": "probability that a new node fails",
            "role-race": "number of CreateCluster calls that fail because a new role can't be assumed yet",
        },
    )
)
