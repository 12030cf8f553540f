"""The server for agents: `hpkit mcp`."""
