"""The policy pack, as the Pulumi engine starts it: `--policy-pack policies`."""

from hpkit_policies.pack import run

run()
