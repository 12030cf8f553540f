"""Fakes of Pulumi's resource plugins, used only by the local cloud."""
