"""Measures how busy Kueue is: waiting items in its queues, and its number of cycles."""

from __future__ import annotations

import http.client
import re
import ssl
from dataclasses import dataclass

from hpkit_local.kubernetes.api import Api
from hpkit_local.rehearsal.objects import REHEARSED

__all__ = ["Activity", "Metrics"]

_NAME = "hpkit-rehearsal"
_NAMESPACE = "kueue-system"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_SECONDS = 10.0
_PENDING = r'^kueue_pending_workloads\{[^}]*status="%s"[^}]*\} (\S+)$'
_ACTIVE, _PARKED = (re.compile(_PENDING % status, re.MULTILINE) for status in ("active", "inadmissible"))
_ATTEMPTS = re.compile(r"^kueue_admission_attempts_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Activity:
    """active: workloads in the queue; parked: those set aside. attempts: cycles since Kueue started."""

    active: int
    parked: int
    attempts: int


class Metrics:
    """Kueue's metrics, with an account that may read them."""

    def __init__(self, api: Api, port: int) -> None:
        self._api = api
        # Kueue signs its certificate itself; no other process uses the port on loopback.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_SECONDS, context=context)
        self._token = ""

    def prepare(self) -> None:
        """Create the account."""
        account = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        for path, document in (
            (self._accounts(), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(_NAMESPACE)}),
            (f"{_RBAC}/clusterroles/{_NAME}", {**_rbac_head("ClusterRole"), "rules": rules}),
            (
                f"{_RBAC}/clusterrolebindings/{_NAME}",
                {**_rbac_head("ClusterRoleBinding"), "roleRef": role, "subjects": [account]},
            ),
        ):
            self._api.apply(path, document)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self._token = self._api.create(f"{self._accounts()}/token", request)["status"]["token"]

    def read(self) -> Activity:
        """Return how busy Kueue is. Raises ConnectionError while it doesn't respond."""
        try:
            self._connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {self._token}"})
            answer = self._connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ConnectionError(f"Kueue's metrics: {error}") from error
        if answer.status != http.client.OK:
            raise ConnectionError(f"Kueue's metrics: {answer.status} {text[:200]}")
        return Activity(
            sum(int(float(each)) for each in _ACTIVE.findall(text)),
            sum(int(float(each)) for each in _PARKED.findall(text)),
            sum(int(float(each)) for each in _ATTEMPTS.findall(text)),
        )

    def close(self) -> None:
        """Delete the account."""
        self._connection.close()
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


def _rbac_head(kind: str) -> dict[str, object]:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": _named()}
