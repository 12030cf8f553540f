"""Calls the Kubernetes API of an existing EKS cluster, with a token from the caller's AWS credentials.

It never writes, and doesn't use a kubeconfig. Endpoint and certificate come from DescribeCluster.
"""

import base64
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from boto3 import Session
from botocore.exceptions import BotoCoreError
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from kubernetes.client import ApiClient, ApiException, Configuration
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from hpkit.clients.calls import FailedCall

__all__ = ["KUBERNETES_ERRORS", "api_client", "dynamic_client", "find_admission", "find_inside"]

# Label of every node of a HyperPod cluster.
_HYPERPOD: Final = "sagemaker.amazonaws.com/compute-type"
_KUEUE_GROUP: Final = "kueue.x-k8s.io"
_KUEUE_NAMESPACE: Final = "kueue-system"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_Found = TypeVar("_Found")
_TIMEOUT: Final = (5, 30)
# EKS accepts a presigned GetCallerIdentity of at most 15 minutes as a token (aws-iam-authenticator, API authorization).
_TOKEN_PREFIX: Final = "k8s-aws-v1."  # noqa: S105 - it marks tokens, and is none
_TOKEN_SECONDS: Final = 60
# Raised if an API server can't be reached, rejects the caller, or doesn't serve a resource.
KUBERNETES_ERRORS: Final = (
    ApiException,
    ResourceNotFoundError,
    HTTPError,
    BotoCoreError,
    OSError,
    KeyError,
    # Raised for an invalid certificate, and for a response that isn't JSON.
    ValueError,
)


class _ApiClient(ApiClient):
    """A client with a timeout for every call, because resource discovery accepts none."""

    def call_api(self, *args: Any, **options: Any) -> Any:
        """Call with the timeout, unless the caller has another one."""
        return super().call_api(*args, **{**options, "_request_timeout": options.get("_request_timeout") or _TIMEOUT})


class _Configuration(Configuration):
    """A configuration with a new token for each call, because EKS accepts a token for only 15 minutes."""

    def __init__(self, host: str, token: Callable[[], str]) -> None:
        super().__init__(host=host)
        self._new_token = token
        # The client requests the token if it finds this key.
        self.api_key = {"authorization": ""}

    def get_api_key_with_prefix(self, identifier: str, alias: str | None = None) -> str | None:  # noqa: ARG002 - the client's own
        """Return the header with a new token."""
        return f"Bearer {self._new_token()}"


def find_inside(session: Session, cluster: Mapping[str, Any]) -> dict[str, list[str]] | FailedCall:
    """Return hpkit's view of an existing cluster, or why it couldn't be read.

    apiGroups and deployments indicate Kueue. Without Kueue's API group, the deployments decide, because one with the
    add-on's name would conflict with it. nodes: the names of nodes that don't belong to HyperPod.
    """

    def read_lists(client: Any) -> dict[str, list[str]]:
        groups = [group for group in client.resources.api_groups if group == _KUEUE_GROUP]
        nodes = client.resources.get(api_version="v1", kind="Node").get(label_selector=f"!{_HYPERPOD}")
        return {
            "apiGroups": groups,
            "deployments": [] if groups else _deployments(client),
            "nodes": [each.metadata.name for each in nodes.items],
        }

    return _asked(session, cluster, read_lists)


def find_admission(session: Session, cluster: Mapping[str, Any]) -> dict[str, dict[str, Any]] | FailedCall:
    """Return specifications of admission policies and bindings, and labels of namespaces, by kind and name."""

    def read_policies(client: Any) -> dict[str, dict[str, Any]]:
        objects: dict[str, dict[str, Any]] = {}
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
            items = client.resources.get(api_version=_ADMISSION, kind=kind).get().to_dict()["items"]
            objects[kind] = {each["metadata"]["name"]: each["spec"] for each in items}
        namespaces = client.resources.get(api_version="v1", kind="Namespace").get().to_dict()["items"]
        objects["Namespace"] = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in namespaces}
        return objects

    return _asked(session, cluster, read_policies)


def _asked(session: Session, cluster: Mapping[str, Any], read_with: Callable[[Any], _Found]) -> _Found | FailedCall:
    """Return what a client of the cluster read, or why it couldn't."""
    try:
        with dynamic_client(session, cluster) as client:
            return read_with(client)
    except ApiException as error:
        return FailedCall("kubernetes:get", f"{error.status} {error.reason}", "the API server rejects this identity")
    except KUBERNETES_ERRORS as error:
        return FailedCall("kubernetes:get", type(error).__name__, f"the Kubernetes API cannot be reached: {error}")


def _deployments(client: Any) -> list[str]:
    found = client.resources.get(api_version="apps/v1", kind="Deployment").get(namespace=_KUEUE_NAMESPACE)
    return [each.metadata.name for each in found.items]


@contextmanager
def dynamic_client(session: Session, cluster: Mapping[str, Any]) -> Iterator[Any]:
    """Return a dynamic client of the Kubernetes API of an EKS cluster, from EKS's DescribeCluster.

    Any failure, now or later, is one of KUBERNETES_ERRORS.
    """
    with api_client(session, cluster) as client, tempfile.TemporaryDirectory() as folder:
        untyped: Any = DynamicClient
        # By default, discovered resources are cached in a shared file, and might be outdated.
        yield untyped(client, cache_file=str(Path(folder) / "resources.json"))


@contextmanager
def api_client(session: Session, cluster: Mapping[str, Any]) -> Iterator[ApiClient]:
    """Return a client of the Kubernetes API of an EKS cluster; any failure is one of KUBERNETES_ERRORS."""
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "ca.pem"
        certificate.write_bytes(base64.b64decode(cluster["certificateAuthority"]["data"]))
        configuration = _Configuration(cluster["endpoint"], _tokens(session, cluster["name"]))
        configuration.ssl_ca_cert = str(certificate)
        configuration.retries = 0
        with _ApiClient(configuration) as client:
            yield client


def _tokens(session: Session, name: str) -> Callable[[], str]:
    """Return a function that creates a token for a cluster; signing makes no request."""
    signer = RequestSigner(
        ServiceId("STS"), session.region_name, "sts", "v4", session.get_credentials(), session.events
    )
    request = {
        "method": "GET",
        "url": f"https://sts.{session.region_name}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": name},
        "context": {},
    }

    def token() -> str:
        url = signer.generate_presigned_url(request, expires_in=_TOKEN_SECONDS, operation_name="")
        return _TOKEN_PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")

    return token
