"""Waits until the listed resources can be used. It creates nothing."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

__all__ = ["Readiness"]


class Readiness(pulumi.CustomResource):
    """Waits until the listed resources can be used. It creates nothing."""

    def __init__(
        self,
        resource_name: str,
        *,
        minutes: pulumi.Input[float],
        certificate_authority: pulumi.Input[str] | None = None,
        cluster_arn: pulumi.Input[str] | None = None,
        deployments: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        eks_cluster_name: pulumi.Input[str] | None = None,
        endpoint: pulumi.Input[str] | None = None,
        instance_counts: pulumi.Input[Mapping[str, pulumi.Input[float]]] | None = None,
        instance_groups: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        key_arn: pulumi.Input[str] | None = None,
        pod_identity_associations: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            minutes: Maximum wait in minutes.
            certificate_authority: Certificate authority of the Kubernetes API, in base64.
            cluster_arn: HyperPod cluster that has the groups.
            deployments: Deployments that must be available, `namespace/name`.
            eks_cluster_name: EKS cluster whose Kubernetes API is read.
            endpoint: Address of the Kubernetes API. Without other inputs, only access for the caller is
                awaited.
            instance_counts: Instances that each instance group should have. When the time is up, the run
                continues with a warning.
            instance_groups: Instance groups whose nodes must be Ready and schedulable.
            key_arn: KMS key that must be enabled.
            pod_identity_associations: IDs of Pod Identity associations that must be effective, by
                `namespace/service-account`.
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod:index:Readiness",
            resource_name,
            {
                "minutes": minutes,
                "certificateAuthority": certificate_authority,
                "clusterArn": cluster_arn,
                "deployments": deployments,
                "eksClusterName": eks_cluster_name,
                "endpoint": endpoint,
                "instanceCounts": instance_counts,
                "instanceGroups": instance_groups,
                "keyArn": key_arn,
                "podIdentityAssociations": pod_identity_associations,
            },
            opts,
        )
