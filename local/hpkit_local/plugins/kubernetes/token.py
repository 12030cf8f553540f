"""The token that `aws eks get-token` would print, created in process: a presigned call of STS GetCallerIdentity."""

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
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from hpkit_provider.engine.errors import PluginError

__all__ = ["EksToken", "eks_token"]

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
                f"no token for EKS cluster {self.cluster}: {error}. What to do: check the AWS credentials and "
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
