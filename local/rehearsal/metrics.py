"""How busy Kueue is: what waits to be looked at, and how often it has looked."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

import urllib3

from local.kubernetes.api import Api
from local.rehearsal.objects import REHEARSED

__all__ = ["Activity", "Metrics"]

_NAME = "hpkit-rehearsal"
_NAMESPACE = "kueue-system"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_SECONDS = 10.0
_ACTIVE = re.compile(r'^kueue_pending_workloads\{[^}]*status="active"[^}]*\} (\S+)$', re.MULTILINE)
_ATTEMPTS = re.compile(r"^kueue_admission_attempts_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Activity:
    """active: workloads that are to be looked at, not set aside. attempts: cycles so far, since Kueue started."""

    active: int
    attempts: int


class Metrics:
    """Kueue's metrics, with an account that may read them."""

    def __init__(self, api: Api, port: int) -> None:
        self._api = api
        self._url = f"https://127.0.0.1:{port}/metrics"
        # Its certificate is one that Kueue signs itself; nobody else is on loopback.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._pool = urllib3.PoolManager(ssl_context=context, assert_hostname=False)
        self._token = ""

    def prepare(self) -> None:
        """Make the account."""
        account = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        for path, document in (
            (self._accounts(), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(_NAMESPACE)}),
            (f"{_RBAC}/clusterroles/{_NAME}", {**_of("ClusterRole"), "rules": rules}),
            (
                f"{_RBAC}/clusterrolebindings/{_NAME}",
                {**_of("ClusterRoleBinding"), "roleRef": role, "subjects": [account]},
            ),
        ):
            self._api.apply(path, document)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self._token = self._api.create(f"{self._accounts()}/token", request)["status"]["token"]

    def read(self) -> Activity:
        """Return how busy Kueue is; ConnectionError while it does not answer."""
        try:
            answer = self._pool.request(
                "GET", self._url, headers={"Authorization": f"Bearer {self._token}"}, timeout=_SECONDS, retries=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionError(f"GET {self._url}: {error}") from error
        if answer.status != 200:
            raise ConnectionError(f"GET {self._url}: {answer.status} {answer.data[:200].decode(errors='replace')}")
        text = answer.data.decode()
        return Activity(
            sum(int(float(each)) for each in _ACTIVE.findall(text)),
            sum(int(float(each)) for each in _ATTEMPTS.findall(text)),
        )

    def close(self) -> None:
        """Take the account away."""
        self._pool.clear()
        for path in (
            f"{_RBAC}/clusterrolebindings/{_NAME}",
            f"{_RBAC}/clusterroles/{_NAME}",
            self._accounts(),
        ):
            self._api.delete(path)

    @staticmethod
    def _accounts() -> str:
        return f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{_NAME}"


def _named(namespace: str = "") -> dict[str, object]:
    return {"name": _NAME, "labels": REHEARSED, **({"namespace": namespace} if namespace else {})}


def _of(kind: str) -> dict[str, object]:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": _named()}
