"""Runs the policy pack for `pulumi --policy-pack policies`."""

from hpkit_policies.pack import run

run()
