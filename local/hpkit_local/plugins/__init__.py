"""Fakes of Pulumi's resource plugins, used by the local cloud alone."""
