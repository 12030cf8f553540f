"""Kinds of jobs whose pods Kueue admits, as the Kubernetes API names them."""

from collections.abc import Mapping
from typing import Final

__all__ = ["JOB_RESOURCES", "resources_of"]

_KUBEFLOW: Final = "kubeflow.org/v1"
# Kind → its API version, and its resource in URLs and RBAC rules.
JOB_RESOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "Job": ("batch/v1", "jobs"),
    "PyTorchJob": (_KUBEFLOW, "pytorchjobs"),
    "TFJob": (_KUBEFLOW, "tfjobs"),
    "XGBoostJob": (_KUBEFLOW, "xgboostjobs"),
    "PaddleJob": (_KUBEFLOW, "paddlejobs"),
    "JAXJob": (_KUBEFLOW, "jaxjobs"),
    "MPIJob": ("kubeflow.org/v2beta1", "mpijobs"),
    "HyperPodPyTorchJob": ("sagemaker.amazonaws.com/v1", "hyperpodpytorchjobs"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "RayJob": ("ray.io/v1", "rayjobs"),
    "RayCluster": ("ray.io/v1", "rayclusters"),
    "Deployment": ("apps/v1", "deployments"),
}


def resources_of(*groups: str) -> list[str]:
    """Return the resources of the job kinds in some API groups, by name."""
    return sorted(name for version, name in JOB_RESOURCES.values() if version.partition("/")[0] in groups)
