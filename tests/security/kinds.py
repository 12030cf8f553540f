"""A job of each kind that members may submit, around a pod spec, in the format of the kind's API."""

from copy import deepcopy

from tests.conftest import NIGHTLY
from tests.security.members import ATTACK, container, job, pod

__all__ = [
    "BAD_PODS",
    "CRDS",
    "GOOD_PODS",
    "KINDS",
    "KUBEFLOW",
    "RAY_EVASIONS",
    "THEIRS",
    "VOLUMES",
    "any_fields",
    "ray",
    "service",
    "templates_in",
    "workload",
]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KUBEFLOW = {
    "JAXJob": ("kubeflow.org/v1", "jaxReplicaSpecs", "Worker"),
    "MPIJob": ("kubeflow.org/v2beta1", "mpiReplicaSpecs", "Launcher"),
    "PaddleJob": ("kubeflow.org/v1", "paddleReplicaSpecs", "Worker"),
    "PyTorchJob": ("kubeflow.org/v1", "pytorchReplicaSpecs", "Master"),
    "TFJob": ("kubeflow.org/v1", "tfReplicaSpecs", "Worker"),
    "XGBoostJob": ("kubeflow.org/v1", "xgbReplicaSpecs", "Master"),
}


def _labelled(name, team="john"):
    """Return metadata with the team's queue."""
    return {"name": name, "labels": {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue", **ATTACK}}


def _template(**spec):
    whole = pod("template", **spec)
    return {"metadata": {"labels": whole["metadata"]["labels"]}, "spec": whole["spec"]}


def _kubeflow(kind):
    version, field, role = KUBEFLOW[kind]

    def make(name, **spec):
        specs = {role: {"replicas": 1, "restartPolicy": "Never", "template": _template(**spec)}}
        whole = {field: specs, "runPolicy": {"cleanPodPolicy": "Running"}}
        return {"apiVersion": version, "kind": kind, "metadata": _labelled(name), "spec": whole}

    return make


def _job_set(name, **spec):
    child = {
        "metadata": {"labels": _labelled(name)["labels"]},
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": _template(**spec)},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _labelled(name),
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": child}]},
    }


def _cluster(**spec):
    template = _template(**spec)
    del template["spec"]["restartPolicy"]
    group = {"groupName": "w", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "rayStartParams": {}}
    head = deepcopy(template)
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": head},
        "workerGroupSpecs": [{**group, "template": template}],
    }


def _ray_cluster(name, **spec):
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": _labelled(name), "spec": _cluster(**spec)}


def _ray_job(name, **spec):
    body = {
        "entrypoint": "python train.py",
        "shutdownAfterJobFinishes": True,
        "submissionMode": "HTTPMode",
        "rayClusterSpec": _cluster(**spec),
    }
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": _labelled(name), "spec": body}


def _ray_service(name, **spec):
    body = {"serveConfigV2": "applications: []", "rayClusterConfig": _cluster(**spec)}
    return {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": _labelled(name), "spec": body}


def _leader_workers(name, **spec):
    template = _template(**spec)
    del template["spec"]["restartPolicy"]
    rollout = {"rolloutStrategy": {"type": "RollingUpdate"}}
    body = {"replicas": 1, **rollout, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    version = "leaderworkerset.x-k8s.io/v1"
    return {"apiVersion": version, "kind": "LeaderWorkerSet", "metadata": _labelled(name), "spec": body}


def _hyperpod(name, **spec):
    replicas = [{"name": "pods", "replicas": 1, "template": _template(**spec)}]
    body = {"nprocPerNode": "1", "replicaSpecs": replicas}
    return {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": _labelled(name),
        "spec": body,
    }


def _deployment(name, **spec):
    template = _template(**spec)
    del template["spec"]["restartPolicy"]
    body = {"replicas": 1, "selector": {"matchLabels": ATTACK}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _labelled(name), "spec": body}


# By kind: a function of a name and fields of its pods' spec.
KINDS = {
    "Pod": pod,
    "Job": job,
    **{kind: _kubeflow(kind) for kind in KUBEFLOW},
    "JobSet": _job_set,
    "RayCluster": _ray_cluster,
    "RayJob": _ray_job,
    "RayService": _ray_service,
    "LeaderWorkerSet": _leader_workers,
    "HyperPodPyTorchJob": _hyperpod,
    "Deployment": _deployment,
}


def ray(kind, name, change):
    """Return a job of Ray after a function has changed its spec and its cluster's spec."""
    document = KINDS[kind](name)
    spec = document["spec"]
    change(spec, spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec)
    return document


_RAY = ("RayCluster", "RayJob", "RayService")
_SERVICE = "spec.headGroupSpec.serviceType"
# By a member's action: the change, the rejected field, and the kinds that have it.
RAY_EVASIONS = {
    "workers that are not counted": (
        lambda _, cluster: cluster["workerGroupSpecs"][0].update(minReplicas=100, maxReplicas=100),
        "spec.workerGroupSpecs[].minReplicas",
        _RAY,
    ),
    "workers of a group without replicas": (
        lambda _, cluster: cluster["workerGroupSpecs"][0].update(
            minReplicas=1 + cluster["workerGroupSpecs"][0].pop("replicas")
        ),
        "spec.workerGroupSpecs[].minReplicas",
        _RAY,
    ),
    "a submitter that is not counted": (
        lambda spec, _: spec.update(clusterSelector={"ray.io/cluster": "small"}, submissionMode="K8sJobMode"),
        "spec.clusterSelector",
        ("RayJob",),
    ),
    "a year after the end": (
        lambda spec, _: spec.update(ttlSecondsAfterFinished=31_536_000),
        "spec.ttlSecondsAfterFinished",
        ("RayJob",),
    ),
    "a head after the end": (
        lambda spec, _: spec.update(
            deletionStrategy={key: {"policy": "DeleteWorkers"} for key in ("onSuccess", "onFailure")}
        ),
        "spec.deletionStrategy",
        ("RayJob",),
    ),
    "the same by its older name": (
        lambda spec, _: spec.update(deletionPolicy="DeleteWorkers"),
        "spec.deletionStrategy",
        # The published CRD, with which the nightly run creates it, has that name no longer.
        () if NIGHTLY else ("RayJob",),
    ),
    "a load balancer": (lambda _, cluster: cluster["headGroupSpec"].update(serviceType="LoadBalancer"), _SERVICE, _RAY),
    "a port of each node": (
        lambda _, cluster: cluster["headGroupSpec"].update(headService={"spec": {"type": "NodePort"}}),
        _SERVICE,
        _RAY,
    ),
    "a service of a RayService": (
        lambda spec, _: spec.update(serveService={"spec": {"type": "LoadBalancer"}}),
        _SERVICE,
        ("RayService",),
    ),
    "an ingress": (lambda _, cluster: cluster["headGroupSpec"].update(enableIngress=True), _SERVICE, _RAY),
}


# As in the CRD of Kubeflow's training operator 1.7.0.
_SCALE = {
    "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
    "statusReplicasPath": ".status.replicaStatuses.Worker.active",
}


def any_fields(*more):
    """Yield a CRD that takes any field for each kind that Kubernetes itself doesn't have; more: other objects."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    for document in (*(make("probe") for make in KINDS.values()), *more):
        (group, _, version), kind = document["apiVersion"].partition("/"), document["kind"]
        if "." not in group:
            continue
        plural, scale = f"{kind.lower()}s", {"scale": _SCALE} if kind == "PyTorchJob" else {}
        served = {"name": version, "served": True, "storage": True, "schema": schema}
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                "versions": [{**served, "subresources": {"status": {}, **scale}}],
            },
        }


def templates_in(document):
    """Yield every pod template of a document, including a pod itself."""
    if document["kind"] == "Pod":
        yield document
        return
    waiting = [document["spec"]]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "containers" in part.get("spec", {}):
                yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def workload(spec, **more):
    """Return the Workload that Kueue creates for pods."""
    body = {
        "queueName": "hyperpod-ns-john-localqueue",
        "podSets": [{"name": "main", "template": {"spec": spec}}],
        **more,
    }
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}, "spec": body}


def service(type_=None):
    """Return a Service of a type, or of the default type for None."""
    spec = {"ports": [{"port": 80}], **({"type": type_} if type_ else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}


TAINTS = (
    "sagemaker.amazonaws.com/node-health-status",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/disk-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "karpenter.sh/disrupted",
    "reserved-for-smith",
    "",
)
# Every volume type of Kubernetes 1.34 that is neither a claim nor local to the pod (core/v1, VolumeSource).
VOLUMES = {
    "awsElasticBlockStore": {"volumeID": "vol-1"},
    "azureDisk": {"diskName": "a", "diskURI": "https://a.blob.core.windows.net/a/a.vhd"},
    "azureFile": {"secretName": "a", "shareName": "a"},
    "cephfs": {"monitors": ["a"]},
    "cinder": {"volumeID": "a"},
    "csi": {"driver": "files.example.com"},
    "fc": {"targetWWNs": ["a"], "lun": 0},
    "flexVolume": {"driver": "example/files"},
    "flocker": {"datasetName": "a"},
    "gcePersistentDisk": {"pdName": "a"},
    "gitRepo": {"repository": "https://example.com/a.git"},
    "glusterfs": {"endpoints": "a", "path": "a"},
    "hostPath": {"path": "/"},
    "image": {"reference": "example.com/a:1"},
    "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0},
    "nfs": {"server": "files.example.com", "path": "/"},
    "photonPersistentDisk": {"pdID": "a"},
    "portworxVolume": {"volumeID": "a"},
    "quobyte": {"registry": "10.0.0.1:7861", "volume": "a"},
    "rbd": {"monitors": ["a"], "image": "a"},
    "scaleIO": {"gateway": "https://a", "system": "a", "volumeName": "a", "secretRef": {"name": "a"}},
    "storageos": {"volumeName": "a", "volumeNamespace": "a"},
    "vsphereVolume": {"volumePath": "a"},
}


def _affine(field, **term):
    """Return the field of a pod that must run near or far from others."""
    terms = [{"topologyKey": "kubernetes.io/os", "labelSelector": {}, **term}]
    return {"affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


THEIRS = "123456789012.dkr.ecr.us-west-2.amazonaws.com/acme-dev/smith/train:1"
BAD_PODS = {
    "years to stop": ({"terminationGracePeriodSeconds": 315_360_000}, "spec.terminationGracePeriodSeconds"),
    "no time to stop": ({"terminationGracePeriodSeconds": 0}, "spec.terminationGracePeriodSeconds"),
    "a second too long": ({"terminationGracePeriodSeconds": 121}, "spec.terminationGracePeriodSeconds"),
    "a system's priority": ({"priorityClassName": "system-node-critical"}, "spec.priorityClassName"),
    "devices that are claimed": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]},
        "spec.resourceClaims",
    ),
    "another team's image": ({"containers": [container(image=THEIRS)]}, "spec.containers[].image"),
    "another team's image first": (
        {"initContainers": [container(name="first", image=THEIRS)]},
        "spec.containers[].image",
    ),
    "any image by the first digits of its ID": (
        {"containers": [container(image="sha256:1a")]},
        "spec.containers[].image",
    ),
    **{
        f"{field} of {name}": (_affine(field, **term), "spec.affinity")
        for field in ("podAffinity", "podAntiAffinity")
        for name, term in (
            ("another team's pods", {"namespaces": ["hyperpod-ns-smith"]}),
            ("all pods", {"namespaceSelector": {}}),
        )
    },
    "a preference for another team's pods": (
        {
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/os", "namespaceSelector": {}}}
                    ]
                }
            }
        },
        "spec.affinity",
    ),
    **{
        f"tolerates {key or 'everything'}": ({"tolerations": [{"key": key, "operator": "Exists"}]}, "spec.tolerations")
        for key in TAINTS
    },
    **{
        f"a volume of {name}": ({"volumes": [{"name": "v", name: body}]}, "spec.volumes")
        for name, body in VOLUMES.items()
    },
}
GOOD_PODS = {
    "two minutes to stop": {"terminationGracePeriodSeconds": 120},
    "tolerates accelerators": {
        "tolerations": [
            {"key": key, "operator": "Exists"}
            for key in ("nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa")
        ]
    },
    "tolerates what the API server adds": {
        "tolerations": [
            {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for name in ("not-ready", "unreachable")
        ]
    },
    "volumes": {
        "volumes": [
            {"name": f"v{number}", **volume}
            for number, volume in enumerate(
                (
                    {"configMap": {"name": "a"}},
                    {"downwardAPI": {"items": []}},
                    {"emptyDir": {}},
                    {"persistentVolumeClaim": {"claimName": "a"}},
                    {"projected": {"sources": []}},
                    {"secret": {"secretName": "a"}},
                )
            )
        ]
    },
    "its own image": {"containers": [container(image=THEIRS.replace("smith", "john"))]},
    "far from the team's own pods": _affine("podAntiAffinity", namespaces=["hyperpod-ns-john"]),
    "near the team's own pods": _affine("podAffinity"),
    "a public image": {"containers": [container(image="public.ecr.aws/deep-learning/smith/train:2")]},
    "a sidecar": {"initContainers": [container(name="side", restartPolicy="Always")]},
}
