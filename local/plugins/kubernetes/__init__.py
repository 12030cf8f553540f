"""The fake of Pulumi's `kubernetes` resource plugin: any kind, by server-side apply, on the local cloud's API server.

Does not: talk to an API server that is not on a loopback address, nor wait for what needs controllers or a kubelet
(Deployments, Jobs, load balancers): none run in the local cloud.
"""

from importlib.metadata import version

__all__ = ["VERSION"]

VERSION = version("pulumi_kubernetes")
