"""Parts that any Pulumi plugin in Python needs: server, tasks, waiting, errors; nothing about HyperPod."""
