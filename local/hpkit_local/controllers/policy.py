"""The task governance add-on and the cluster policy as Kueue objects: topology, admission policy, priority classes.

It doesn't install Kueue, which is a service of the local cloud and always runs.
"""

from __future__ import annotations

from typing import Any

import yaml

from hpkit.catalog import NETWORK_LAYERS
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.controllers.objects import KINDS, SHIPPED_ANNOTATION, Manifest, Manifests
from hpkit_local.controllers.queues import TOPOLOGY, queues
from hpkit_local.kubernetes.control_plane import READY_ANNOTATION
from hpkit_local.kubernetes.kueue import INTEGRATIONS, OUTSIDE, SHIPPED_GATES
from hpkit_local.kubernetes.kueue_run import CONFIG_KEY, CONFIG_MAP, POD_LABELS, digest

__all__ = ["ADDON", "governance", "is_fair"]

ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
_ADMISSION = "hyperpod-task-governance-admission-policy"
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# Of the namespaces that the add-on's policy is for: a team whose quota is switched off is not among them.
_GOVERNED = {
    "sagemaker.amazonaws.com/activate-quota": "Enabled",
    "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
}


def governance(snapshot: Snapshot) -> Manifests:
    """Return the objects of add-on, policy and quotas."""
    addons = [key for key in snapshot.addons if key.rpartition("|")[2] == ADDON]
    installed = Manifests()
    if addons:
        owners = frozenset(f"addon/{key}" for key in addons)
        policies = frozenset(f"policy/{key}" for key in snapshot.policies)
        installed = Manifests(
            (*_installed(owners), _deployment(owners), _settings(owners | policies, fair=is_fair(snapshot)))
        )
    sharing = any(
        each["SchedulerConfig"].get("IdleResourceSharing") == "Enabled" for each in snapshot.policies.values()
    )
    governed = queues(snapshot, fair=is_fair(snapshot), idle=sharing)
    # Kueue removes a topology only when no flavor uses it, so it can outlive the add-on.
    needed = addons or any("topologyName" in manifest.content.get("spec", {}) for manifest in governed.items)
    topology = Manifests((_topology(),)) if needed else Manifests()
    return topology + installed + _classes(snapshot) + governed


def is_fair(snapshot: Snapshot) -> bool:
    """Return whether idle compute is shared by weight; without a policy it is, the API's default."""
    return all(each["SchedulerConfig"].get("FairShare", "Enabled") == "Enabled" for each in snapshot.policies.values())


def _classes(snapshot: Snapshot) -> Manifests:
    items = []
    for policy_id, policy in snapshot.policies.items():
        owners = frozenset({f"policy/{policy_id}"})
        for each in policy["SchedulerConfig"].get("PriorityClasses", []):
            content = {"value": each["Weight"], "description": f"Priority class {each['Name']} of the cluster policy"}
            items.append(Manifest(KINDS["WorkloadPriorityClass"], f"{each['Name']}-priority", content, owners=owners))
    return Manifests(tuple(items))


def _topology() -> Manifest:
    levels = [{"nodeLabel": label} for label in (*NETWORK_LAYERS, "kubernetes.io/hostname")]
    return Manifest(KINDS["Topology"], TOPOLOGY, {"spec": {"levels": levels}})


def _installed(owners: frozenset[str]) -> tuple[Manifest, ...]:
    return (
        Manifest(KINDS["ValidatingAdmissionPolicy"], _ADMISSION, {"spec": _admission()}, owners=owners),
        Manifest(
            KINDS["ValidatingAdmissionPolicyBinding"],
            f"{_ADMISSION}-binding",
            {
                "spec": {
                    "policyName": _ADMISSION,
                    "validationActions": ["Deny"],
                    "matchResources": {"namespaceSelector": {"matchLabels": _GOVERNED}},
                }
            },
            owners=owners,
        ),
    )


def _deployment(owners: frozenset[str]) -> Manifest:
    """Return the add-on's Deployment, whose pod represents the Kueue that runs next to the API server.

    The pod is ready when that Kueue is, with the settings in the cluster: see `Reconciler`.
    """
    namespace, _, _ = CONFIG_MAP.split("/")[-3:]
    pod = {
        "metadata": {"labels": POD_LABELS, "annotations": {READY_ANNOTATION: "false"}},
        "spec": {"containers": [{"name": "manager", "image": "kueue"}]},
    }
    content = {"spec": {"replicas": 1, "selector": {"matchLabels": POD_LABELS}, "template": pod}}
    return Manifest(
        KINDS["Deployment"], "kueue-controller-manager", content, namespace=namespace, labels=POD_LABELS, owners=owners
    )


def _settings(owners: frozenset[str], *, fair: bool) -> Manifest:
    """Return the configuration that the add-on ships, which `hpkit_local.kubernetes.kueue_run` follows.

    Source: SageMaker developer guide, "Set up for HyperPod task governance". It's written again when it changes; until
    then it can be edited, as on AWS. An annotation records the written text, so that a restart writes nothing.
    """
    config: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "manageJobsWithoutQueueName": False,
        "managedJobsNamespaceSelector": OUTSIDE,
        "integrations": INTEGRATIONS,
        "featureGates": SHIPPED_GATES,
    }
    if fair:
        config["fairSharing"] = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    text = yaml.safe_dump(config, sort_keys=False)
    namespace, _, name = CONFIG_MAP.split("/")[-3:]
    return Manifest(
        KINDS["ConfigMap"],
        name,
        {"data": {CONFIG_KEY: text}},
        namespace=namespace,
        annotations={SHIPPED_ANNOTATION: digest(text)},
        owners=owners,
    )


def _admission() -> dict[str, Any]:
    """Return the add-on's policy: objects in a team's namespace must have a queue, including pods of a controller.

    The kinds, the message, and the namespaces' labels were seen on AWS, and aren't documented. Only the StatefulSets of
    a HyperPodPyTorchJob are exempt, and with them the pods of any StatefulSet, whether or not a HyperPodPyTorchJob
    exists. A pod of a Job or a RayCluster needs the label in its template. That the policy covers Jobs is an assumption
    from Kueue's sample of such a policy, which has the same message and accepts the Jobs of a JobSet.
    """
    rules = [
        ("", "v1", "pods"),
        ("apps", "v1", "deployments"),
        ("apps", "v1", "statefulsets"),
        ("batch", "v1", "jobs"),
        ("ray.io", "v1", "rayclusters"),
    ]
    stateful = _owned("StatefulSet", by="HyperPodPyTorchJob", version="sagemaker.amazonaws.com/v1")
    pods = _owned("Pod", by="StatefulSet", version="apps/v1")
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [group],
                    "apiVersions": [version],
                    "resources": [plural],
                    "operations": ["CREATE", "UPDATE"],
                }
                for group, version, plural in rules
            ],
        },
        "matchConditions": [{"name": "exclude-hpto-owned", "expression": f"!({stateful}) && !({pods})"}],
        "validations": [
            {
                "expression": f"object.metadata.?labels[?'{_QUEUE_LABEL}'].orValue('') != ''",
                "message": f"The label '{_QUEUE_LABEL}' is either missing or does not have a value set.",
            }
        ],
    }


def _owned(kind: str, *, by: str, version: str) -> str:
    owners = "object.metadata.?ownerReferences.orValue([])"
    return f"object.kind == '{kind}' && {owners}.exists(each, each.kind == '{by}' && each.apiVersion == '{version}')"
