"""Calls the Kubernetes API of an existing EKS cluster, with a token of the caller's AWS credentials.

Does not: write, nor use a kubeconfig. Endpoint and certificate are those of DescribeCluster, the token is the caller's.
"""

import base64
import binascii
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import kubernetes.client
from boto3 import Session
from botocore.exceptions import BotoCoreError
from botocore.signers import RequestSigner
from urllib3.exceptions import HTTPError

from hpkit.preflight.model import FailedCall

__all__ = ["KUBERNETES_ERRORS", "api_client", "find_kueue"]

_GROUP: Final = "kueue.x-k8s.io"
_NAMESPACE: Final = "kueue-system"
_TIMEOUT: Final = (5, 15)
# EKS takes a presigned GetCallerIdentity of at most 15 minutes as a token (aws-iam-authenticator, API authorization).
_TOKEN_PREFIX: Final = "k8s-aws-v1."  # noqa: S105 - it marks tokens, and is none
_TOKEN_SECONDS: Final = 60
# How an API server that cannot be reached, or does not let one in, shows itself.
KUBERNETES_ERRORS: Final = (
    kubernetes.client.ApiException,
    HTTPError,
    BotoCoreError,
    OSError,
    KeyError,
    binascii.Error,
)


def find_kueue(session: Session, cluster: Mapping[str, Any]) -> dict[str, list[str]] | FailedCall:
    """Return the API groups and deployments that tell of a Kueue, or why they could not be seen.

    Without a Kueue's API group the deployments decide, since one of the add-on's name would be in its way.
    """
    try:
        with api_client(session, cluster) as client:
            return _signs(client)
    except kubernetes.client.ApiException as error:
        return FailedCall("kubernetes:get", f"{error.status} {error.reason}", "the API server refuses this identity")
    except KUBERNETES_ERRORS as error:
        return FailedCall("kubernetes:get", type(error).__name__, f"the Kubernetes API cannot be reached: {error}")


@contextmanager
def api_client(session: Session, cluster: Mapping[str, Any]) -> Iterator[Any]:
    """Give a client of the Kubernetes API of an EKS cluster, as EKS's DescribeCluster describes it.

    Whatever goes wrong, now or while it is used, is one of KUBERNETES_ERRORS.
    """
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "ca.pem"
        certificate.write_bytes(base64.b64decode(cluster["certificateAuthority"]["data"]))
        configuration = kubernetes.client.Configuration(host=cluster["endpoint"])
        configuration.ssl_ca_cert = str(certificate)
        configuration.retries = 0
        configuration.api_key = {"authorization": f"Bearer {_token(session, cluster['name'])}"}
        with kubernetes.client.ApiClient(configuration) as client:
            yield client


def _signs(client: Any) -> dict[str, list[str]]:
    listed = kubernetes.client.ApisApi(client).get_api_versions(_request_timeout=_TIMEOUT).groups
    groups = [group.name for group in listed if group.name == _GROUP]
    deployments: list[str] = []
    if not groups:
        apps = kubernetes.client.AppsV1Api(client)
        found = apps.list_namespaced_deployment(_NAMESPACE, _request_timeout=_TIMEOUT).items
        deployments = [str(each.metadata.name) for each in found if each.metadata]
    return {"apiGroups": groups, "deployments": deployments}


def _token(session: Session, name: str) -> str:
    client = session.client("sts")
    signer = RequestSigner(
        client.meta.service_model.service_id,
        session.region_name,
        "sts",
        "v4",
        session.get_credentials(),
        session.events,
    )
    request = {
        "method": "GET",
        "url": f"https://sts.{session.region_name}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": name},
        "context": {},
    }
    url = signer.generate_presigned_url(request, expires_in=_TOKEN_SECONDS, operation_name="")
    return _TOKEN_PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
