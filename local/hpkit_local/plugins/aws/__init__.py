"""The fake `aws` resource plugin: the types the program uses, as calls to the loopback AWS endpoint.

It has no part in deployments to AWS: it won't start work unless AWS_ENDPOINT_URL is a loopback address.
"""

__all__ = ["VERSION"]

VERSION = "7.51.1"  # of the real plugin, whose types and properties this one answers for
