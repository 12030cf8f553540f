"""Requests to a platform over time: tasks from files and generators, as workloads of a plan's queues."""

from hpkit_whatif.scenario.model import Rack, Scenario, TaskSpec
from hpkit_whatif.scenario.read import Source, open_scenario
from hpkit_whatif.scenario.workloads import Task, Tasks, of_teams, rack_nodes, scenario_model

__all__ = [
    "Rack",
    "Scenario",
    "Source",
    "Task",
    "TaskSpec",
    "Tasks",
    "of_teams",
    "open_scenario",
    "rack_nodes",
    "scenario_model",
]
