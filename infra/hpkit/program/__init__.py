"""The Pulumi program: registered resources, with their charts, permissions and recording."""
