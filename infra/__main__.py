"""Builds the stack that an organization file in stacks/ describes."""

from hpkit.program.run import run

run()
