"""The Pulumi program: what is registered, with its charts, rights and recording."""
