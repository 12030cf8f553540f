"""Parts that any Pulumi plugin in Python needs: server, calls, waiting, errors; nothing about HyperPod."""
