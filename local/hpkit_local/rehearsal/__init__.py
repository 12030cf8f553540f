"""A scenario on the API server and the Kueue of an instance: objects of teams made, Jobs submitted and ended."""
