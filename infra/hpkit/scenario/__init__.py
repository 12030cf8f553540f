"""What is asked of a platform over time: tasks from files, generators and traces, as workloads of a plan's queues."""

from hpkit.scenario.model import Scenario, TaskSpec
from hpkit.scenario.read import Source, open_scenario
from hpkit.scenario.workloads import Task, Tasks

__all__ = ["Scenario", "Source", "Task", "TaskSpec", "Tasks", "open_scenario"]
