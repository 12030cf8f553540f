"""One local cloud per worker, which test files use in turn: each file finds it empty, or with one platform on it.

After each file, leftovers are searched for, deleted, and searched for again. If some remain, the next file gets another
cloud. Files that kill parts or count calls have their own cloud (tests/running.py).
"""

import os
import shutil
import signal
import time
from contextlib import ExitStack

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import RejectedError
from hpkit_local.supervisor.local_cloud import LocalCloud
from tests.examples import copy_examples
from tests.program.cloud import ROOT, Live, Program, Repository
from tests.running import AT_ONCE, eventually, running

__all__ = ["Clouds"]

# Of the examples.
REGIONS = ("us-west-2", "us-east-1")


class Clouds:
    """The cloud of this worker, started when a test first needs it."""

    def __init__(self, make_folder) -> None:
        self._make_folder = make_folder
        self._stack = ExitStack()
        self._instance: LocalCloud | None = None
        self._nothing: list = []
        self._platform: Program | None = None
        self._settled: dict = {}
        self._seconds = 0.0
        self.repository = Repository(make_folder("repository"))

    def close(self) -> None:
        """Stop the running cloud; the next request starts another."""
        self._stack.close()
        self._instance = self._platform = None

    def empty(self) -> LocalCloud:
        """Return the cloud with nothing on it, and no stack in Pulumi's state."""
        self._restore_files()
        if self._instance is not None:
            if self._platform is not None:
                self._take_down()
            if not self.is_empty() and not self._wiped():
                self.close()
        self._platform = None
        if self._instance is None:
            self._start()
        for folder in ("pulumi-state", "project"):
            shutil.rmtree(self._instance.folder / folder, ignore_errors=True)
        return self._instance

    def handson(self) -> LocalCloud:
        """Return the cloud with a live handson-dev that matches its file."""
        self._restore_files()
        if not self._is_as_it_was():
            instance = self.empty()
            self._platform = Program(instance, "handson-dev", root=self.repository.folder)
            begun = time.monotonic()
            self._platform.up()
            self._seconds = time.monotonic() - begun
            self._settled = Live(instance).settled()
        return self._instance

    def is_empty(self) -> bool:
        """Return whether the cloud has only what it had initially."""
        return self._holds() == self._nothing

    @property
    def seconds_of_up(self) -> float:
        """Duration of the last undisturbed `up` of handson-dev."""
        return self._seconds

    def _start(self) -> None:
        self._instance = self._stack.enter_context(running("shared", self._make_folder("cloud"), *AT_ONCE, engine=True))
        self._nothing = self._holds()

    def _is_as_it_was(self) -> bool:
        if self._platform is None:
            return False
        live = Live(self._instance)
        return bool(live.sm.list_clusters()["ClusterSummaries"]) and live.settled() == self._settled

    def _restore_files(self) -> None:
        shutil.rmtree(self.repository.folder / "stacks")
        shutil.rmtree(self.repository.folder / ".hpkit", ignore_errors=True)
        copy_examples(self.repository.folder)
        shutil.copy(ROOT / "infra" / "__main__.py", self.repository.folder / "infra")

    def _take_down(self) -> None:
        try:
            self._platform.destroy()
        except (AssertionError, ToolError):
            # Leftovers of failed tests are deleted.
            return

    def _holds(self) -> list:
        """Return what exists: counts of resources that AWS names itself, names of all others."""
        lives = [Live(self._instance, region) for region in REGIONS]
        counts = [{kind: len(ids) for kind, ids in live.at_aws().items() if ids} for live in lives]
        return [*counts, lives[0].objects()]

    def _wiped(self) -> bool:
        """Delete everything: cluster objects through the API, as deleting EKS would, then the endpoint's state."""
        try:
            for region in REGIONS:
                _delete_clusters(Live(self._instance, region))
            self._forget_aws()
            eventually(self.is_empty, "it is empty")
            # The add-on's settings were deleted with it, so Kueue has restarted.
            eventually(self._admits, "Kueue's webhooks answer")
        except Exception as error:  # noqa: BLE001 - whatever is wrong with this cloud, there is another
            print(f"another cloud is started: {error}")
            return False
        return True

    def _admits(self) -> bool:
        """Return whether a Job could be created."""
        container = {"name": "main", "image": "none"}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "tried"}, "spec": {"template": template}}
        try:
            Live(self._instance).api.create("/apis/batch/v1/namespaces/default/jobs?dryRun=All", job)
        except RejectedError:
            return False
        return True

    def _forget_aws(self) -> None:
        """Restart the endpoint without its state; while it's stopped, it can't rewrite deleted state."""
        before = self._instance.state().parts["aws"]
        os.kill(before.pid, signal.SIGSTOP)
        for file in self._instance.folder.glob("aws.json*"):
            file.unlink()
        os.kill(before.pid, signal.SIGKILL)
        eventually(lambda: self._instance.state().parts["aws"].restarts > before.restarts, "the end is seen")
        eventually(lambda: self._instance.state().ready, self._instance.state)


def _delete_clusters(live: Live) -> None:
    for quota in live.quotas().values():
        live.sm.delete_compute_quota(ComputeQuotaId=quota["ComputeQuotaId"])
    # A policy can only be deleted without quotas.
    eventually(lambda: not live.quotas(), "quotas are gone")
    for policy in live.policies():
        live.sm.delete_cluster_scheduler_config(ClusterSchedulerConfigId=policy["ClusterSchedulerConfigId"])
    eventually(lambda: not live.policies(), "policies are gone")
    for cluster in live.sm.list_clusters()["ClusterSummaries"]:
        live.sm.delete_cluster(ClusterName=cluster["ClusterName"])
    eventually(lambda: not live.sm.list_clusters()["ClusterSummaries"], "the clusters are gone")
    eks = live.client("eks")
    for name in eks.list_clusters()["clusters"]:
        if eks.describe_cluster(name=name)["cluster"]["deletionProtection"]:
            eks.update_cluster_config(name=name, deletionProtection=False)
        eks.delete_cluster(name=name)
    eventually(lambda: not eks.list_clusters()["clusters"], "the EKS clusters are gone")
