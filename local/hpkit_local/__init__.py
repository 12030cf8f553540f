"""The local cloud: what `pulumi up` talks to when there is no AWS account."""
