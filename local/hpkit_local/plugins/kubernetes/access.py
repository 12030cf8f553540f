"""From the provider's kubeconfig the way to the API server: never one beyond this machine."""

import argparse
import base64
import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import yaml
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException

from hpkit.text.formatting import is_loopback
from hpkit_local.kubernetes.api import configuration_of, loopback_client
from hpkit_provider.engine.errors import PluginError

__all__ = ["KNOWN", "Connection", "connect", "eks_token"]

# As in the AWS CLI. By its parameters, the URL is valid for 60 s. EKS accepts the token for 15 minutes, and the CLI
# states 14.
_URL_SECONDS = 60
_TOKEN_SECONDS = 13 * 60
_CONNECT_SECONDS = 2
_HEADER = "x-k8s-aws-id"


@dataclass
class EksToken:
    """A token for one EKS cluster, created again before it expires."""

    cluster: str
    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _value: str = ""
    _until: float = 0.0

    def value(self) -> str:
        """Return a token that is good for at least a minute."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._value, self._until = self._make(), time.monotonic() + _TOKEN_SECONDS
            return self._value

    def forget(self) -> None:
        """Create a new one at the next use, because this one was rejected."""
        self._until = 0.0

    def can_be_reviewed(self) -> bool:
        """Return whether the local cloud's endpoint is available: the API server calls it to review tokens."""
        url = urlsplit(os.environ.get("AWS_ENDPOINT_URL", ""))
        if not url.hostname:
            return True
        try:
            socket.create_connection((url.hostname, url.port or 80), timeout=_CONNECT_SECONDS).close()
        except OSError:
            return False
        return True

    def why_unreachable(self) -> str:
        """Return why EKS's endpoint doesn't admit this machine in the local cloud.

        "" if it does, or isn't available.
        """
        url = os.environ.get("AWS_ENDPOINT_URL", "").rstrip("/")
        if urlsplit(url).scheme not in ("http", "https"):
            return ""
        try:
            headers = {"Content-Type": "application/json"}
            asked = Request(f"{url}/_hpkit/unreachable", data=b"{}", headers=headers, method="POST")  # noqa: S310 - checked above
            with urlopen(asked, timeout=_CONNECT_SECONDS) as answer:  # noqa: S310
                return str(json.load(answer).get("why", ""))
        except (OSError, ValueError, AttributeError):
            return ""

    def _make(self) -> str:
        try:
            url = self._presigned()
        except (BotoCoreError, ClientError) as error:
            raise PluginError(
                f"no token for EKS cluster {self.cluster}: {error}. To fix: check the AWS credentials and "
                "AWS_ENDPOINT_URL; `hpkit local env` prints the local cloud's."
            ) from None
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")

    def _presigned(self) -> str:
        session = Session(profile=self.profile)
        sts = session.create_client("sts", region_name=self.region)
        if self.role_arn:
            answer = sts.assume_role(RoleArn=self.role_arn, RoleSessionName="EKSGetTokenAuth")["Credentials"]
            session.set_credentials(answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"])
            sts = session.create_client("sts", region_name=self.region)

        def name_cluster(request: Any, **_: Any) -> None:
            request.headers[_HEADER] = self.cluster

        sts.meta.events.register("before-sign.sts.GetCallerIdentity", name_cluster)
        return str(sts.generate_presigned_url("get_caller_identity", ExpiresIn=_URL_SECONDS, HttpMethod="GET"))


def eks_token(execution: Mapping[str, Any]) -> EksToken | None:
    """Return the token for a kubeconfig's `exec` with the AWS CLI; None if it uses something else."""
    arguments = [str(each) for each in execution.get("args") or []]
    asks = any(pair == ("eks", "get-token") for pair in pairwise(arguments))
    if PurePath(str(execution.get("command", ""))).stem != "aws" or not asks:
        return None
    environment = {str(each["name"]): str(each["value"]) for each in execution.get("env") or []}
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--cluster-name", "--cluster-id", dest="cluster", required=True)
    parser.add_argument("--region", default=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"))
    parser.add_argument("--profile", default=environment.get("AWS_PROFILE"))
    parser.add_argument("--role-arn")
    try:
        options, _ = parser.parse_known_args(arguments)
    except (argparse.ArgumentError, SystemExit):
        raise PluginError(f"kubeconfig: `aws {' '.join(arguments)}` lacks --cluster-name NAME") from None
    return EksToken(options.cluster, options.region, options.profile, options.role_arn)


# The settings of the official plugin's provider that the program uses; the engine sends the rest.
KNOWN = frozenset({"enableServerSideApply", "kubeconfig", "version", "pluginDownloadURL", "__internal"})


@dataclass(frozen=True)
class Connection:
    """A connection that may be used: a client, the default namespace, and the token if EKS gives it."""

    client: ApiClient
    namespace: str
    token: EksToken | None = None


def connect(kubeconfig: str) -> Connection:
    """Return the connection; PluginError if the kubeconfig does not lead to an API server on this machine."""
    document, folder = _kubeconfig(kubeconfig)
    try:
        context = _named(document, "contexts", document.get("current-context"))["context"]
        server = str(_named(document, "clusters", context["cluster"])["cluster"].get("server", ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise PluginError(f"kubeconfig: no {error} exists. To fix: check kubernetes:kubeconfig.") from None
    if not is_loopback(server):
        raise PluginError(
            f"the API server {server or '(none)'} isn't on a loopback address. This is the local cloud's fake of "
            "the Kubernetes plugin, and it never acts on any other cluster. To fix: for a real cluster, run "
            "Pulumi without the variables of `hpkit local env`; it then uses the official plugin."
        )
    token = _taken_over(document, context.get("user"))
    configuration = _configuration(document, folder)
    if token is not None:
        configuration.api_key["BearerToken"] = ""

        def renew(target: Configuration) -> None:
            target.api_key["BearerToken"] = f"Bearer {token.value()}"

        configuration.refresh_api_key_hook = renew  # type: ignore[assignment] # its default, None, is taken for its type
    return Connection(loopback_client(configuration), str(context.get("namespace") or "default"), token)


def _kubeconfig(kubeconfig: str) -> tuple[dict[str, Any], Path]:
    """Return the document and the folder that its relative paths start from."""
    if not kubeconfig:
        kubeconfig = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    one_line = "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{")
    path = Path(kubeconfig).expanduser()
    try:
        text = path.read_text(encoding="utf-8") if one_line else kubeconfig
        document = yaml.safe_load(text)
    except (OSError, yaml.YAMLError) as error:
        raise PluginError(
            f"kubeconfig {path if one_line else '(given as text)'} isn't readable: {error}. To fix: set "
            "kubernetes:kubeconfig or KUBECONFIG; `hpkit local env` prints the local cloud's."
        ) from None
    if not isinstance(document, dict):
        raise PluginError("kubeconfig: this is not a kubeconfig document (a mapping with clusters and contexts).")
    return document, path.parent if one_line else Path.cwd()


def _named(document: Mapping[str, Any], section: str, name: str | None) -> dict[str, Any]:
    for entry in document.get(section) or []:
        if entry.get("name") == name:
            found: dict[str, Any] = entry
            return found
    raise KeyError(f"{name!r} in {section}")


def _taken_over(document: dict[str, Any], user: str | None) -> EksToken | None:
    """Remove `aws eks get-token` from the kubeconfig: the token is created here, without the AWS CLI."""
    for entry in document.get("users") or []:
        if entry.get("name") == user and (entry.get("user") or {}).get("exec"):
            token = eks_token(entry["user"]["exec"])
            if token is not None:
                del entry["user"]["exec"]
            return token
    return None


def _configuration(document: dict[str, Any], folder: Path) -> Configuration:
    try:
        return configuration_of(document, folder=folder)
    except ConfigException as error:
        raise PluginError(f"kubeconfig: {error}. To fix: check kubernetes:kubeconfig.") from None
