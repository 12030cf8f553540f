"""A running API server for the plugin, shared by all files, called over gRPC."""

import json
from contextlib import ExitStack

import pytest

from hpkit_local.controllers.access import group_of
from hpkit_local.kubernetes.api import Api
from hpkit_local.supervisor import control
from tests.local.controllers.conftest import REGION, Aws, Environment
from tests.local.plugins.kubernetes.harness import in_process
from tests.running import eventually

REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}


@pytest.fixture(scope="package")
def instance(clouds):
    return clouds.empty()


@pytest.fixture(scope="package")
def api(instance):
    return Api.of_kubeconfig(instance.kubeconfig, field_manager="hpkit-local")


@pytest.fixture(scope="package")
def kubeconfig(instance, api):
    """Create an EKS cluster, and a kubeconfig for it as `aws eks update-kubeconfig` writes it."""
    aws = Aws(instance)
    environment = Environment(aws, api)
    cluster = environment.eks.describe_cluster(name="kube")["cluster"]
    arguments = ["--region", REGION, "eks", "get-token", "--cluster-name", "kube", "--output", "json"]
    execution = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "args": arguments}
    authority = {"certificate-authority-data": cluster["certificateAuthority"]["data"]}
    (principal,) = environment.eks.list_access_entries(clusterName="kube")["accessEntries"]
    eventually(lambda: may_all(api, principal), "whoever made the EKS cluster may do all in it")
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "kube",
            "clusters": [{"name": "kube", "cluster": {"server": cluster["endpoint"], **authority}}],
            "users": [{"name": "kube", "user": {"exec": execution}}],
            "contexts": [{"name": "kube", "context": {"cluster": "kube", "user": "kube"}}],
        }
    )


def may_all(api, principal):
    """Return whether the permissions of an access entry are effective: on EKS, too, this takes a moment."""
    attributes = {"verb": "*", "group": "*", "resource": "*"}
    review = {"spec": {"user": principal, "groups": [group_of(principal)], "resourceAttributes": attributes}}
    return api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", REVIEW | review)["status"]["allowed"]


@pytest.fixture
def configured(kubeconfig, instance, monkeypatch):
    """Return a plugin with the given settings, which authenticates with an EKS token."""
    for name, value in control.environment(instance).items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(in_process(kubeconfig=kubeconfig, **settings))


@pytest.fixture
def plugin(configured):
    return configured()
