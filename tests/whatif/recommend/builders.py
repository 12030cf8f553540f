"""Shared by tests of recommendations: a stack, a scenario, and reports without a simulation."""

from pathlib import Path

from hpkit.project import load_stack

ROOT = Path(__file__).parents[3]
HANDSON = ROOT / "stacks" / "scenarios" / "handson.yaml"


def handson():
    return load_stack("handson-dev")


def plan_of_handson():
    return handson().plans["dev"]
