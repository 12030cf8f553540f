"""The Kubernetes plugin uses EKS's endpoint, which only admits clients that its settings admit."""

import base64
import re
import socket
import ssl
from urllib.parse import urlsplit

import pytest

from tests.local.controllers.conftest import Aws
from tests.local.plugins.kubernetes.harness import FailedError
from tests.running import HANGS, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

CONFIG_MAP = "core/v1:ConfigMap"


@pytest.fixture
def endpoint_of_kube(instance):
    """Change who can reach the API server of EKS cluster `kube`; afterward everybody can, as before."""
    eks = Aws(instance).client("eks")

    def change(**settings):
        eks.update_cluster_config(name="kube", resourcesVpcConfig=settings)
        eventually(lambda: eks.describe_cluster(name="kube")["cluster"]["status"] == "ACTIVE", "it is changed")

    yield change
    now = eks.describe_cluster(name="kube")["cluster"]["resourcesVpcConfig"]
    if not now["endpointPublicAccess"] or now["publicAccessCidrs"] != ["0.0.0.0/0"]:
        change(endpointPublicAccess=True, publicAccessCidrs=["0.0.0.0/0"])


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def test_an_update_shuts_the_endpoint_within_seconds_and_opens_it(configured, endpoint_of_kube):
    plugin = configured()
    plugin.create(CONFIG_MAP, "while-open", config_map("while-open"))
    endpoint_of_kube(endpointPublicAccess=False, endpointPrivateAccess=True)
    messages = []

    def rejected():
        # The API server caches reviews of tokens for ten seconds.
        try:
            plugin.create(CONFIG_MAP, f"shut-{len(messages)}", config_map(f"shut-{len(messages)}"))
            messages.append("")
        except FailedError as error:
            messages.append(str(error))
        return messages[-1]

    eventually(rejected, "callers are rejected")
    assert re.search(r"no security group of the control plane .* admits port 443 from 10\.", messages[-1])
    endpoint_of_kube(endpointPublicAccess=True, publicAccessCidrs=["198.51.100.0/24"])
    plugin.create(CONFIG_MAP, "open-again", config_map("open-again"))


def test_the_parts_of_the_local_cloud_are_always_admitted(endpoint_of_kube, api):
    endpoint_of_kube(endpointPublicAccess=False, endpointPrivateAccess=True)
    assert api.healthy()


def test_the_certificate_of_the_endpoint_is_that_of_the_api_server(instance, kubeconfig):
    del kubeconfig
    cluster = Aws(instance).client("eks").describe_cluster(name="kube")["cluster"]
    authority = base64.b64decode(cluster["certificateAuthority"]["data"]).decode()
    place = urlsplit(cluster["endpoint"])
    with (
        socket.create_connection((place.hostname, place.port), timeout=HANGS) as plain,
        ssl.create_default_context(cadata=authority).wrap_socket(plain, server_hostname=place.hostname) as safe,
    ):
        assert safe.version() == "TLSv1.3"
