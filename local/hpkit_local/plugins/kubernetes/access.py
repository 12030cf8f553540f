"""From the provider's kubeconfig the way to the API server: never one beyond this machine."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException

from hpkit_local.kubernetes.client import configuration_of, loopback_client
from hpkit_local.plugins.kubernetes.token import EksToken, eks_token
from hpkit_provider.engine.errors import PluginError

__all__ = ["KNOWN", "Connection", "connect"]

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
        raise PluginError(f"kubeconfig: no {error} exists. What to do: check kubernetes:kubeconfig.") from None
    _require_loopback(server)
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
            f"kubeconfig {path if one_line else '(given as text)'} isn't readable: {error}. What to do: set "
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


def _require_loopback(server: str) -> None:
    host = urlsplit(server).hostname or ""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise PluginError(
            f"the API server {server or '(none)'} isn't on a loopback address. This is the local cloud's fake of "
            "the Kubernetes plugin, and it never acts on any other cluster. What to do: for a real cluster, run "
            "Pulumi without the variables of `hpkit local env`; it then uses the official plugin."
        )


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
        raise PluginError(f"kubeconfig: {error}. What to do: check kubernetes:kubeconfig.") from None
