"""How the API server reaches processes behind a Service: through a proxy, because pods here are processes on loopback.

The API server's egress selector sends it connections for the network `cluster`: webhooks and aggregated APIs whose
configuration refers to a Service. Source: Kubernetes, `EgressSelectorConfiguration` of apiserver.k8s.io/v1beta1.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hpkit_local.kubernetes.pki import Pair, authority, signed
from hpkit_local.kubernetes.relay import Reader, Relay, Writer
from hpkit_local.processes.files import write_private

__all__ = ["Egress", "FrontProxy", "front_proxy", "write_selection"]

_SECONDS = 5.0


@dataclass(frozen=True)
class FrontProxy:
    """The API server's identity for aggregated APIs and the proxy.

    Its name there, its certificate, and their authority.

    server: the proxy's own identity.
    """

    name: str
    client: Pair
    server: Pair
    authority: Pair


def front_proxy(folder: Path) -> FrontProxy:
    """Return the certificates, created if missing, from an authority that signs nothing else."""
    name = "front-proxy-client"
    issuer = authority(folder, "front-proxy-ca")
    return FrontProxy(name, signed(folder, name, issuer=issuer), signed(folder, "egress", issuer=issuer), issuer)


def write_selection(path: Path, *, port: int, front: FrontProxy) -> None:
    """Write the configuration that makes an API server reach Services through a proxy on this loopback port."""
    tls = {
        "caBundle": str(front.authority.certificate),
        "clientCert": str(front.client.certificate),
        "clientKey": str(front.client.key),
    }
    transport = {"tcp": {"url": f"https://127.0.0.1:{port}", "tlsConfig": tls}}
    connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
    document = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
    write_private(path, json.dumps(document).encode())


class Egress(Relay):
    """An HTTPS proxy for the API server, with CONNECT only; `locate` maps host and port to a port on loopback.

    It is called in a separate thread with the target that the API server names: the address of a Service or its name.
    It raises LookupError with the reason if nothing serves the target, and OSError while the API server is away.
    """

    def __init__(self, port: int, *, front: FrontProxy, locate: Callable[[str, int], int]) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=front.authority.certificate)
        context.load_cert_chain(front.server.certificate, front.server.key)
        context.verify_mode = ssl.CERT_REQUIRED
        super().__init__(port=port, context=context)
        self._locate = locate

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Connect one caller with its target, or return the reason why not."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _SECONDS)
            host, port = _target(head.decode("latin-1"))
            address = ("127.0.0.1", await self.loop.run_in_executor(None, self._locate, host, port))
            await self.pass_on(reader, writer, address, first=b"HTTP/1.1 200 Connection established\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return
        except (OSError, LookupError, ValueError) as error:
            reason = " ".join(str(error).split())
            writer.write(f"HTTP/1.1 502 {reason}\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()
            await writer.wait_closed()


def _target(head: str) -> tuple[str, int]:
    """Return host and port of a request's header. Raises ValueError if it isn't a CONNECT request."""
    words = head.split("\r\n", 1)[0].split(" ")
    host, _, port = words[1].rpartition(":") if len(words) > 1 else ("", "", "")
    if words[0] != "CONNECT" or not host:
        raise ValueError(f"{words[0]} is not known, CONNECT HOST:PORT alone is")
    return host, int(port)
