"""Objects that HyperPod requires in the cluster before it creates nodes, from its dependencies chart.

With the API, installing them is a required step, and without it the cluster's creation might fail entirely. Here it
always fails, so that the missing step is noticed. A chart that the local cloud could only record counts as installed,
as its warning states. Source: SageMaker HyperPod developer guide, "Installing packages on the Amazon EKS cluster using
Helm".
"""

from typing import Final

from hpkit_local.kubernetes.api import Api

__all__ = ["has_cert_manager", "missing_dependencies"]

_AGENT: Final = "/apis/apps/v1/namespaces/aws-hyperpod/daemonsets/health-monitoring-agent"
_RECORDED: Final = "/api/v1/namespaces/kube-system/secrets/hpkit.release.v1.hyperpod-dependencies"
_CERTIFICATES: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/certificates.cert-manager.io"


def has_cert_manager(api: Api) -> bool:
    """Return whether cert-manager is installed: its kinds exist, or a chart was recorded."""
    return any(_is_there(api, path) for path in (_CERTIFICATES, _RECORDED))


def missing_dependencies(api: Api) -> str:
    """Return why no cluster can be created, or nothing."""
    if any(_is_there(api, path) for path in (_AGENT, _RECORDED)):
        return ""
    return (
        "The EKS cluster has not been prepared for HyperPod: there is no DaemonSet "
        "aws-hyperpod/health-monitoring-agent. Install the chart HyperPodHelmChart "
        "(github.com/aws/sagemaker-hyperpod-cli, helm_chart) first, then create the cluster again"
    )


def _is_there(api: Api, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return bool(api.items(folder, fields=f"metadata.name={name}", metadata_only=True))
