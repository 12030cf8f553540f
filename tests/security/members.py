"""A team's data scientists on the real API server, by impersonation: only their groups' permissions."""

import json
from pathlib import Path

import pytest
import yaml
from kubernetes.client import ApiClient

from hpkit_local.kubernetes.api import Api, RejectedError, configuration_of
from tests.running import eventually

__all__ = [
    "ATTACK",
    "CORE",
    "JOBS",
    "NAMESPACE",
    "container",
    "delete",
    "impersonating",
    "job",
    "member",
    "pod",
    "refused",
    "tidy",
    "tried",
]

NAMESPACE = "hyperpod-ns-john"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
# What these tests create, deleted after each test.
ATTACK = {"security-test": "yes"}


class _Impersonating(ApiClient):
    """A client that impersonates another user in every request."""

    def __init__(self, configuration, headers):
        super().__init__(configuration)
        self._impersonated = headers

    def call_api(self, method, url, header_params=None, *arguments, **more):
        return super().call_api(method, url, {**(header_params or {}), **self._impersonated}, *arguments, **more)


def member(instance, team, *, user="ann"):
    """Return a client with a data scientist's identity, as EKS's access entry maps the role."""
    role = f"arn:aws:sts::123456789012:assumed-role/{team}-scientists/{user}"
    return impersonating(instance, role, f"hyperpod:team:{team}")


def impersonating(instance, user, group):
    """Return a client that impersonates a user in one group."""
    path = Path(instance.kubeconfig)
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    configuration = configuration_of(document, folder=path.parent, certificates=path.parent / "pki")
    configuration.proxy = None
    configuration.retries = False
    headers = {"Impersonate-User": user, "Impersonate-Group": group}
    return Api(_Impersonating(configuration, headers), field_manager="kubectl")


def container(**more):
    """Return a container that trains on one GPU."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    return {"name": "main", "image": "train", "resources": resources, **more}


def pod(name, *, team="john", labels=None, annotations=None, owners=None, **spec):
    """Return a pod as a team submits it, with its queue."""
    metadata = {
        "name": name,
        "labels": {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue", **ATTACK, **(labels or {})},
        "annotations": {"hpkit.local/run": "24h", **(annotations or {})},
        **({"ownerReferences": owners} if owners else {}),
    }
    metadata["labels"] = {key: value for key, value in metadata["labels"].items() if value is not None}
    body = {"restartPolicy": "Never", "containers": [container()], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def job(name, *, pods=1, team="john", labels=None, owners=None, **spec):
    """Return a Job of pods like those of `pod`."""
    template = pod(name, team=team, labels=labels, **spec)
    metadata = {"name": name, "labels": template["metadata"]["labels"]} | (
        {"ownerReferences": owners} if owners else {}
    )
    body = {
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 0,
        "template": {
            "metadata": {k: template["metadata"][k] for k in ("labels", "annotations")},
            "spec": template["spec"],
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": body}


def delete(api, path, options):
    """Delete an object or a collection by its path, with custom options."""
    api._answer("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})


def tried(call, *arguments):
    """Return the error of a rejected attempt, or an empty text if it succeeds."""
    try:
        call(*arguments)
    except RejectedError as error:
        text = str(error).partition(f"{error.status} ")[2]
        return str(json.loads(text)["message"]) if text.startswith("{") else text
    return ""


def refused(call, *arguments):
    """Return the error of a rejected attempt; the test fails if it succeeds."""
    message = tried(call, *arguments)
    if not message:
        pytest.fail(f"it was let through: {arguments}")
    return message


def tidy(api):
    """Delete what a test created, regardless of the user."""
    label = ",".join(f"{key}={value}" for key, value in ATTACK.items())
    folders = (JOBS, f"{CORE}/pods", f"{CORE}/services", f"{CORE}/secrets", f"{CORE}/serviceaccounts")
    removed = set()
    for folder in folders:
        for made in api.items(folder, labels=label, metadata_only=True):
            api.delete(f"{folder}/{made['metadata']['name']}")
            removed.add(made["metadata"]["uid"])
    eventually(
        lambda: not any(api.items(folder, labels=label, metadata_only=True) for folder in folders), "they are gone"
    )

    def workloads():
        """Return owners with remaining Workloads.

        Kueue finds a Workload by its owner's name, and would delete the next pod of an owner with that name.
        """
        items = api.items(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads", metadata_only=True)
        owners = (owner["uid"] for item in items for owner in item["metadata"].get("ownerReferences", ()))
        return removed.intersection(owners)

    eventually(lambda: not workloads(), "their Workloads are gone")
