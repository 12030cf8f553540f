"""Entry of the endpoint: `python -m hpkit_local.aws`."""

import argparse
import importlib
import ipaddress
import json
import logging
import os
import re
import signal
import sys
from pathlib import Path

from hpkit.signals import Signals
from hpkit_local.aws.backend import Backend, EndpointSettings
from hpkit_local.aws.controllers import Controllers
from hpkit_local.aws.errors import EndpointError
from hpkit_local.aws.faults import known_faults
from hpkit_local.aws.moto_state import DEFAULT_ACCOUNT
from hpkit_local.aws.record import CallRecorder
from hpkit_local.aws.server import Endpoint

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Start, print one JSON line with the endpoint, serve until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    try:
        arguments = _arguments(argv)
        record = CallRecorder(arguments.record) if arguments.record else None
        endpoint = Endpoint(Backend(_settings(arguments)), port=arguments.port, record=record)
    except (EndpointError, OSError) as error:
        print(f"hpkit_local.aws: {error}", file=sys.stderr)
        return 2
    signals = Signals(signal.SIGTERM, signal.SIGINT)
    endpoint.start()
    print(json.dumps({"endpoint": endpoint.url, "pid": os.getpid()}), flush=True)
    signals.wait()
    endpoint.stop()
    return 0


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    faults = "; ".join(f"{name}: {meaning}" for name, meaning in known_faults().items())
    parser = argparse.ArgumentParser(prog="python -m hpkit_local.aws", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--state-file", type=Path, help="where state survives a restart; without it none does")
    parser.add_argument(
        "--latency-factor",
        type=float,
        default=1.0,
        help="0 = every change is immediate, 1 = as long as on AWS",
    )
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=VALUE[@PATTERN]", help=faults)
    parser.add_argument("--region", default="us-west-2", help="region of requests that name none")
    parser.add_argument(
        "--from",
        dest="caller_address",
        metavar="ADDRESS",
        help="where callers are: on the internet, in a VPC, or in a network that is connected with it. The Kubernetes "
        "API of EKS admits callers by their place (default: wherever each EKS cluster admits them)",
    )
    parser.add_argument(
        "--account", default=DEFAULT_ACCOUNT, help=f"the AWS account, 12 digits (default: {DEFAULT_ACCOUNT})"
    )
    parser.add_argument("--caller-account", help="the AWS account of callers, if another one (default: the same)")
    parser.add_argument("--caller-role", metavar="ARN", help="the IAM role of callers (default: a user)")
    parser.add_argument("--seed", type=int, help="makes ids and faults repeatable")
    parser.add_argument("--record", type=Path, metavar="FILE", help="append each call with its resource to this file")
    parser.add_argument(
        "--controllers",
        metavar="MODULE:FACTORY",
        help="what acts in the cluster after changes, see local/hpkit_local/aws/controllers.py; default: nothing",
    )
    return parser.parse_args(argv)


def _settings(arguments: argparse.Namespace) -> EndpointSettings:
    faults: dict[str, object] = {}
    for text in arguments.fault:
        name, separator, value = text.partition("=")
        if not separator:
            raise EndpointError(f"--fault {text}: write NAME=VALUE, for example throttle=0.2")
        faults[name] = value
    if arguments.caller_address is not None:
        try:
            ipaddress.IPv4Address(arguments.caller_address)
        except ValueError:
            raise EndpointError(f"--from {arguments.caller_address}: not an IPv4 address, such as 10.20.0.5") from None
    for option, account in (("account", arguments.account), ("caller-account", arguments.caller_account)):
        if account is not None and not re.fullmatch(r"\d{12}", account):
            raise EndpointError(f"--{option} {account}: not an AWS account, which has 12 digits")
    return EndpointSettings(
        account=arguments.account,
        caller_account=arguments.caller_account,
        caller_role=arguments.caller_role,
        caller_address=arguments.caller_address,
        state_file=arguments.state_file,
        latency_factor=arguments.latency_factor,
        faults=faults,
        region=arguments.region,
        seed=arguments.seed,
        controllers=_controllers(arguments.controllers),
    )


def _controllers(reference: str | None) -> Controllers:
    if reference is None:
        return Controllers()
    module, _, factory = reference.partition(":")
    try:
        controllers: Controllers = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError) as error:
        raise EndpointError(f"--controllers {reference}: {error}") from None
    return controllers


if __name__ == "__main__":
    sys.exit(main())
