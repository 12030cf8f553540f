"""What any Pulumi plugin in Python needs: the server, tasks, waiting, errors; it knows nothing of HyperPod."""
