"""Access policies of EKS access entries as RBAC: bindings to a group that represents the entry.

EKS has its own authorizer for access policies, and `kubectl auth can-i --list` doesn't show them. Here they are
bindings. Policies of features that the local cloud doesn't have (inference) give no permissions.

The identity of an EKS bearer token: the response to a TokenReview of the API server. A token is `k8s-aws-v1.` and, in
unpadded URL-safe base64, a presigned URL of STS GetCallerIdentity. The URL signs the header `x-k8s-aws-id`, the
cluster's name. Source: aws-iam-authenticator, "API Authorization from Outside a Cluster".

The signature isn't checked, because the local endpoint has no secrets: anyone who knows an access key ID is admitted.
The header's value isn't checked either, because the URL doesn't contain it. Everything else in the URL is checked.

The aws-auth ConfigMap isn't read; clusters with authentication mode CONFIG_MAP admit no one.
"""

import base64
import binascii
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hpkit_local.aws.api import BackendView
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.aws.services.eks.view import Caller, caller_of
from hpkit_local.controllers.objects import KINDS, Manifest, Manifests

__all__ = ["access", "group_of", "review"]

_RBAC = "rbac.authorization.k8s.io"
# Source: EKS user guide, "Access policy permissions"; the roles are Kubernetes' own user-facing ones.
_ROLES = {
    "AmazonEKSClusterAdminPolicy": "cluster-admin",
    "AmazonEKSAdminPolicy": "admin",
    "AmazonEKSEditPolicy": "edit",
    "AmazonEKSViewPolicy": "view",
}
_READ = ["get", "list", "watch"]
_OWN_RULES: dict[str, list[dict[str, Any]]] = {
    "AmazonEKSAdminViewPolicy": [{"apiGroups": ["*"], "resources": ["*"], "verbs": _READ}],
    "AmazonSagemakerHyperpodTrainingPolicy": [
        {"apiGroups": ["ray.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["sagemaker.amazonaws.com"], "resources": ["hyperpodpytorchjobs"], "verbs": ["*"]},
        {"apiGroups": ["sagemaker.amazonaws.com"], "resources": ["hyperpodpytorchjobs/status"], "verbs": ["*"]},
        {"apiGroups": ["kubeflow.org"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["*"]},
        {
            "apiGroups": [""],
            "resources": ["pods/log", "configmaps", "events", "services", "serviceaccounts", "resourcequotas"],
            "verbs": _READ,
        },
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets", "replicasets"], "verbs": _READ},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues", "workloads"], "verbs": _READ},
    ],
    "AmazonSagemakerHyperpodSpacePolicy": [
        {"apiGroups": ["workspace.jupyter.org"], "resources": ["workspaces"], "verbs": ["*"]},
        {
            "apiGroups": ["workspace.jupyter.org"],
            "resources": ["workspacetemplates", "workspaceaccessstrategies"],
            "verbs": _READ,
        },
        {"apiGroups": ["connection.workspace.jupyter.org"], "resources": ["workspaceconnections"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["pods", "services", "serviceaccounts", "persistentvolumeclaims", "events", "resourcequotas"],
            "verbs": _READ,
        },
        {"apiGroups": ["apps"], "resources": ["daemonsets", "deployments", "replicasets"], "verbs": _READ},
    ],
    "AmazonSagemakerHyperpodSpaceTemplatePolicy": [
        {"apiGroups": ["workspace.jupyter.org"], "resources": ["workspacetemplates"], "verbs": _READ}
    ],
    "AmazonSagemakerHyperpodUserClusterPolicy": [
        {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": _READ},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
        {
            "apiGroups": ["kueue.x-k8s.io"],
            "resources": ["clusterqueues", "resourceflavors", "workloadpriorityclasses"],
            "verbs": _READ,
        },
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["create"]},
    ],
}
_PREFIX = "k8s-aws-v1."
_LONGEST = timedelta(minutes=15)
_SKEW = timedelta(minutes=5)
_NEEDED = ("Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Signature", "X-Amz-SignedHeaders")
_KNOWN = {*_NEEDED, "Version", "X-Amz-Expires", "X-Amz-Security-Token", "User"}


def group_of(principal: str) -> str:
    """Return the group of an access entry; EKS doesn't allow users to name groups with this prefix."""
    return f"eks:access-entry:{principal}"


def access(snapshot: Snapshot, namespaces: Collection[str]) -> Manifests:
    """Return roles and bindings; where a namespace doesn't exist yet, its binding follows when it is."""
    items: list[Manifest] = []
    for entry in snapshot.entries:
        for association in entry["policies"]:
            items.extend(_bindings(entry, association, namespaces))
    bound_roles = {item.content["roleRef"]["name"] for item in items}
    roles = [
        Manifest(KINDS["ClusterRole"], _own_role(policy), {"rules": rules})
        for policy, rules in _OWN_RULES.items()
        if _own_role(policy) in bound_roles
    ]
    return Manifests((*roles, *items))


def _own_role(policy: str) -> str:
    return f"eks:{policy}"


def _bindings(entry: Mapping[str, Any], association: Mapping[str, Any], namespaces: Collection[str]) -> list[Manifest]:
    policy = association["policyArn"].rpartition("/")[2]
    role = _ROLES.get(policy) or (_own_role(policy) if policy in _OWN_RULES else "")
    if not role:
        return []
    principal = entry["principalArn"]
    digest = sha256(f"{principal}|{policy}".encode()).hexdigest()[:16]
    content = {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group_of(principal)}],
    }
    note = {"eks.amazonaws.com/principal-arn": principal}
    name = f"eks:access-entry:{policy}:{digest}"
    if association["accessScope"]["type"] == "cluster":
        return [Manifest(KINDS["ClusterRoleBinding"], name, content, annotations=note)]
    return [
        Manifest(KINDS["RoleBinding"], name, content, namespace=namespace, annotations=note)
        for namespace in association["accessScope"]["namespaces"]
        if namespace in namespaces
    ]


class _RejectedError(ValueError):
    pass


def review(
    view: BackendView, request: Mapping[str, Any], *, why_unreachable: str = "", now: datetime | None = None
) -> dict[str, Any]:
    """Answer a TokenReview. `why_unreachable`: why EKS's endpoint doesn't admit callers, or ""."""
    try:
        key = _access_key(str(request.get("spec", {}).get("token", "")), now or datetime.now(UTC))
        status = {"authenticated": True, "user": _user(view, key)}
    except _RejectedError as error:
        status = {"authenticated": False, "error": str(error)}
    if why_unreachable:
        status = {"authenticated": False, "error": f"on AWS, the connection would time out: {why_unreachable}"}
    version = request.get("apiVersion", "authentication.k8s.io/v1")
    return {"apiVersion": version, "kind": "TokenReview", "status": status}


def _access_key(token: str, now: datetime) -> str:
    url = urlsplit(_decoded(token))
    host = url.hostname or ""
    # Clients that are pointed at this endpoint presign its address instead of a host of STS.
    if not (host.startswith("sts.") and ".amazonaws.com" in host) and host not in ("127.0.0.1", "localhost"):
        raise _RejectedError(f"the token's URL is not one of STS: {host}")
    if url.path not in ("", "/"):
        raise _RejectedError(f"the token's URL has the path {url.path}")
    query = parse_qs(url.query, keep_blank_values=True)
    if wrong := [name for name, values in query.items() if name not in _KNOWN or len(values) != 1]:
        raise _RejectedError(f"the token's URL has parameters that do not belong there: {', '.join(sorted(wrong))}")
    if missing := [name for name in _NEEDED if not query.get(name, [""])[0]]:
        raise _RejectedError(f"the token's URL lacks {', '.join(missing)}")
    if query["Action"] != ["GetCallerIdentity"]:
        raise _RejectedError(f"the token's URL asks for {query['Action'][0]}, not for GetCallerIdentity")
    if "x-k8s-aws-id" not in query["X-Amz-SignedHeaders"][0].lower().split(";"):
        raise _RejectedError("the token's URL does not sign the header x-k8s-aws-id")
    _check_time(query["X-Amz-Date"][0], now)
    return _key_of(query["X-Amz-Credential"][0])


def _decoded(token: str) -> str:
    if not token.startswith(_PREFIX):
        raise _RejectedError(f"the token does not begin with {_PREFIX}")
    text = token.removeprefix(_PREFIX)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise _RejectedError("the token is not a URL in URL-safe base64") from None


def _check_time(text: str, now: datetime) -> None:
    try:
        signed = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise _RejectedError(f"X-Amz-Date {text} is not a time") from None
    if not signed - _SKEW <= now <= signed + _LONGEST:
        raise _RejectedError(f"the token was made at {text} and is good for 15 minutes")


def _key_of(credential: str) -> str:
    parts = credential.split("/")
    if len(parts) != 5 or parts[3:] != ["sts", "aws4_request"] or not parts[0]:
        raise _RejectedError(f"X-Amz-Credential {credential} is not for STS")
    return parts[0]


def _user(view: BackendView, access_key: str) -> dict[str, Any]:
    with view.held():
        cluster = next(iter(view.snapshot().eks), None)
        if cluster is None:
            raise _RejectedError("there is no EKS cluster")
        caller = caller_of(view, access_key, cluster=cluster)
    if caller.entry is None:
        raise _RejectedError(f"{caller.principal} has no access entry in EKS cluster {cluster}")
    return {
        "username": _username(caller, caller.entry),
        "uid": f"aws-iam-authenticator:{caller.account}:{caller.user_id.partition(':')[0]}",
        "groups": [*caller.entry["kubernetesGroups"], group_of(caller.principal)],
        "extra": {
            "accessKeyId": [access_key],
            "arn": [caller.arn],
            "canonicalArn": [caller.principal],
            "principalId": [caller.user_id.partition(":")[0]],
            "sessionName": [_session(caller)],
        },
    }


def _username(caller: Caller, entry: Mapping[str, Any]) -> str:
    # EKS replaces characters in the session's name that Kubernetes user names shouldn't have.
    session = _session(caller)
    return (
        str(entry["username"])
        .replace("{{SessionName}}", session.replace("@", "-"))
        .replace("{{SessionNameRaw}}", session)
        .replace("{{AccountID}}", caller.account)
    )


def _session(caller: Caller) -> str:
    return caller.arn.rpartition("/")[2] if ":assumed-role/" in caller.arn else ""
