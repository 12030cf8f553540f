"""What a web page in the developer's browser can send to each port of the local cloud, on real sockets."""

import ssl
import urllib.error

import pytest
import urllib3

from local.kubernetes.api import Api
from local.supervisor.instance import PORTS

# What a browser adds, by how the page reaches loopback: as another site, by an old browser, by a name of its own.
PAGES = {
    "cross-site": {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
    "form": {"Content-Type": "application/x-www-form-urlencoded"},
    "rebinding": {"Host": "evil.example", "Content-Type": "application/json"},
}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OBJECT = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "by-a-page"}}'
# A path that changes something at one of the ports, and what is sent there.
ATTACKS = (
    ("/_hpkit/faults", '{"throttle": 1}'),
    ("/", "Action=CreateVpc&Version=2016-11-15&CidrBlock=10.0.0.0%2F16"),
    ("/v3/kv/put", '{"key": "a2V5", "value": "dmFsdWU="}'),
    (CONFIG_MAPS, OBJECT),
    ("/run/default/pod/container?cmd=id", ""),
    ("/exec/default/pod/container?command=id&output=1", ""),
)
# The webhooks of Kueue answer what they are asked and change nothing; the API server alone reads the answers.
ASKED = tuple(name for name in PORTS if name != "kueue-webhook")

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning"),
]


@pytest.fixture(scope="module")
def instance(clouds):
    return clouds.empty()


def send(port, scheme, path, headers, body):
    """Return the status that a page's request gets, 0 where there is no connection for it."""
    context = ssl.create_default_context()
    # A developer may have made the browser trust the instance.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib3.PoolManager(ssl_context=context) as pool:
            url = f"{scheme}://127.0.0.1:{port}{path}"
            return pool.request("POST", url, headers=headers, body=body, retries=False, timeout=20).status
    except (urllib3.exceptions.HTTPError, urllib.error.URLError, OSError):
        return 0


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("part", ASKED)
def test_a_web_page_reaches_a_part_of_the_local_cloud(instance, part, page):
    port = instance.ports()[part]
    answers = {
        (scheme, path): send(port, scheme, path, PAGES[page], body)
        for scheme in ("http", "https")
        for path, body in ATTACKS
    }
    assert {answer: status for answer, status in answers.items() if 0 < status < 400} == {}
    names = [each["metadata"]["name"] for each in Api.of_kubeconfig(instance.kubeconfig).items(CONFIG_MAPS)]
    assert "by-a-page" not in names
