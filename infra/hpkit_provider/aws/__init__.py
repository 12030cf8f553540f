"""The SageMaker API as the plugin calls it: client, tags, errors and statuses."""
