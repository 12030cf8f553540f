"""The policy pack: what an organization demands of whatever is registered with the engine, whoever wrote it."""
