"""The policy pack: an organization's requirements for everything that is registered with the engine, by any program."""
