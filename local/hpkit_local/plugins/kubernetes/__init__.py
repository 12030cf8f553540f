"""The fake of Pulumi's `kubernetes` resource plugin: any kind, by server-side apply, on the local cloud's API server.

It calls only API servers on a loopback address. How it differs from the official plugin:
docs/internals/fake-plugins.md.
"""

from importlib.metadata import version

__all__ = ["VERSION"]

VERSION = version("pulumi_kubernetes")
