"""Requests from a web page in the developer's browser to each port of the local cloud, on real sockets."""

import http.client
import json
import socket
import ssl

import pytest

from hpkit_local.kubernetes.api import Api
from hpkit_local.supervisor.local_cloud import PORTS

# Headers that a browser adds, by how the page reaches loopback: as another site, in an old browser, by its own name.
PAGES = {
    "cross-site": {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
    "form": {"Content-Type": "application/x-www-form-urlencoded"},
    "rebinding": {"Host": "evil.example", "Content-Type": "application/json"},
}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OBJECT = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-a-page"}})
# A path that changes something at one of the ports, and the request's body.
CHANGES = (
    ("/_hpkit/faults", '{"throttle": 1}'),
    ("/", "Action=CreateVpc&Version=2016-11-15&CidrBlock=10.0.0.0%2F16"),
    ("/v3/kv/put", '{"key": "a2V5", "value": "dmFsdWU="}'),
    ("/raft", ""),
    (CONFIG_MAPS, OBJECT),
    ("/run/default/pod/container?cmd=id", ""),
    ("/exec/default/pod/container?command=id&output=1", ""),
)
# Paths that return data about the cluster, a process or its settings.
READS = (
    *("/_hpkit/stats", "/api/v1/secrets", "/apis", "/v2/keys/", "/v3/kv/range", "/members", "/configz", "/flagz"),
    *("/debug/pprof/cmdline", "/logs/", "/containerLogs/default/pod/container", "/metrics", "/healthz", "/readyz"),
    *("/livez", "/health", "/version"),
)
# Paths that only return health, or values about a process.
HEALTH = {
    "etcd-metrics": {"/health", "/metrics"},
    "kube-controller-manager": {"/healthz"},
    "kube-scheduler": {"/healthz", "/livez", "/readyz"},
    # The log of every container is one line, which states that no container runs.
    "kwok": {"/healthz", "/livez", "/readyz", "/metrics", "/containerLogs/default/pod/container"},
    "kueue-health": {"/healthz", "/readyz"},
}
# Seconds for a port that accepts a connection and sends nothing: a relay, or a server of the other scheme.
SILENCE = 5

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def context():
    """A browser that trusts the instance, without a client certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def speaks_tls(port, context):
    try:
        with socket.create_connection(("127.0.0.1", port), SILENCE) as plain, context.wrap_socket(plain):
            return True
    except OSError:
        return False


def is_answered(port, context, page, method, path, body=None):
    """Return whether a page's request has an effect, or a response that the page may read; context: None for HTTP."""
    make = http.client.HTTPConnection if context is None else http.client.HTTPSConnection
    more = {} if context is None else {"context": context}
    connection = make("127.0.0.1", port, timeout=SILENCE, **more)
    try:
        connection.request(method, path, body, PAGES[page])
        answer = connection.getresponse()
    except (http.client.HTTPException, OSError):
        return False
    finally:
        connection.close()
    # A page can read another site's response only if that site allows its origin (Fetch standard, "CORS check").
    is_seen = method == "POST" or page == "rebinding" or answer.getheader("Access-Control-Allow-Origin") is not None
    return answer.status < 400 and is_seen


@pytest.mark.parametrize("part", PORTS)
def test_no_web_page_reaches_a_part_of_the_local_cloud(instance, context, part):
    port = instance.ports()[part]
    scheme = context if speaks_tls(port, context) else None
    changes = [("POST", *change) for change in CHANGES]
    reads = [("GET", path, None) for path in READS]
    answered = {
        (page, method, path)
        for page in PAGES
        for method, path, body in (*changes, *reads)
        if is_answered(port, scheme, page, method, path, body)
    }
    # The paths of HEALTH also show that the port belongs to the part.
    assert answered == {("rebinding", "GET", path) for path in HEALTH.get(part, ())}
    names = [entry["metadata"]["name"] for entry in Api.of_kubeconfig(instance.kubeconfig).items(CONFIG_MAPS)]
    assert "by-a-page" not in names
