"""The API servers that the plugin calls, and its identity there."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from hpkit_local.plugins.kubernetes.access import connect, eks_token
from hpkit_provider.engine.errors import PluginError
from tests.local.plugins.kubernetes.harness import FailedError, in_process

AWS = {"command": "aws", "args": ["--region", "eu-west-1", "eks", "get-token", "--cluster-name", "kube"]}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("KUBECONFIG", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "testing"),
        ("AWS_SECRET_ACCESS_KEY", "testing"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("HTTPS_PROXY", "http://proxy.example:3128"),
    ):
        monkeypatch.setenv(name, value)


def kubeconfig(server="https://127.0.0.1:6443", **user):
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "me", "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me", "namespace": "team"}}],
        }
    )


@pytest.mark.parametrize("server", ["https://ABC.gr7.us-west-2.eks.amazonaws.com", ""])
def test_an_api_server_elsewhere_is_refused(server):
    with (
        pytest.raises(FailedError, match=r"n't on a loopback address.*never acts on any other cluster"),
        in_process(kubeconfig=kubeconfig(server)),
    ):
        pass


def test_no_credentials_are_made_for_an_api_server_elsewhere(tmp_path):
    trace = tmp_path / "ran"
    execution = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [str(trace)]}
    with pytest.raises(PluginError, match="loopback"):
        connect(kubeconfig("https://api.example.com", exec=execution))
    assert not trace.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/no/such/file", "n't readable"),
        ("{a", "n't readable"),
        ("\n- a\n", "not a kubeconfig"),
        ("{}", "no .* in context"),
    ],
)
def test_an_unusable_kubeconfig_says_what_is_wrong(text, says):
    with pytest.raises(PluginError, match=says):
        connect(text)


def test_the_token_for_eks_is_the_one_that_the_aws_cli_makes():
    access = connect(kubeconfig(exec=AWS))
    bearer = access.client.configuration.auth_settings()["BearerToken"]["value"]
    prefix, _, encoded = bearer.removeprefix("Bearer ").partition(".")
    assert prefix == "k8s-aws-v1"
    assert "=" not in encoded
    url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    query = parse_qs(url.query)
    assert url.netloc == "127.0.0.1:9"
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
    assert "/eu-west-1/sts/" in query["X-Amz-Credential"][0]


def test_the_token_for_eks_is_kept_until_it_is_refused():
    token = eks_token(AWS)
    first = token.value()
    assert token.value() is first
    token.forget()
    assert token.value() is not first


def test_without_a_kubeconfig_the_plugin_says_what_it_lacks_when_it_is_needed(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with in_process() as plugin, pytest.raises(FailedError, match=r"\.kube/config isn't readable.*hpkit local env"):
        plugin.check("core/v1:ConfigMap", "a", {"kind": "ConfigMap"})
