"""A running API server for the plugin, and both ways to drive it: over gRPC, and under the real engine."""

import json
from contextlib import ExitStack

import pytest

from hpkit.errors import ToolError
from local.kubernetes.api import Api
from local.supervisor import control
from local.supervisor.instance import Instance
from local.supervisor.parts import TOOL_NAMES
from local.toolchain import TOOLS, get_all
from tests.local.effects.conftest import REGION, Aws, Environment
from tests.local.plugins.kubernetes.harness import in_process


@pytest.fixture(scope="session")
def instance(tmp_path_factory):
    try:
        get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=print)
    except ToolError as error:
        pytest.skip(str(error))
    instance = Instance.named("plugin", root=tmp_path_factory.mktemp("cloud"))
    instance.write_aws_arguments(["--latency-factor", "0"])
    control.start(instance, say=print)
    yield instance
    control.reset(instance)


@pytest.fixture(scope="session")
def api(instance):
    return Api.of_kubeconfig(instance.kubeconfig, owner="hpkit-local")


@pytest.fixture(scope="session")
def kubeconfig(instance):
    """Make an EKS cluster, and the kubeconfig for it as `aws eks update-kubeconfig` writes it."""
    aws = Aws(instance)
    environment = Environment(aws, client=aws.client)
    cluster = environment.eks.describe_cluster(name="kube")["cluster"]
    arguments = ["--region", REGION, "eks", "get-token", "--cluster-name", "kube", "--output", "json"]
    execution = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "args": arguments}
    authority = {"certificate-authority-data": cluster["certificateAuthority"]["data"]}
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


@pytest.fixture
def configured(kubeconfig, instance, monkeypatch):
    """Return a plugin for given settings, which gets in with a token of EKS."""
    for name, value in control.environment(instance).items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(in_process(kubeconfig=kubeconfig, **settings))


@pytest.fixture
def plugin(configured):
    return configured()
