"""Runs Pulumi on the repository's program against a local cloud, without a trace in the repository.

Pulumi writes a stack's salt into its settings file; here it gets a copy of that file, which lives with the local cloud.
"""

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpkit.clients.pulumi_stack import PulumiStack
from hpkit.errors import InterruptionError, ToolError
from hpkit.program.teardown import Teardown, holders, teardown_of
from hpkit.project import pulumi_project
from hpkit_local.plugins.install import HOME, OFFICIAL, endpoint_settings, installed
from hpkit_local.processes import identify
from hpkit_local.supervisor.control import Starting, environment, full_disk
from hpkit_local.supervisor.local_cloud import LocalCloud
from hpkit_local.supervisor.local_clouds import reads_of, stacks_of, stacks_up
from hpkit_local.supervisor.pulumi_run import Ended, EngineEvents, run
from hpkit_local.toolchain import tool_path

__all__ = ["VERBS", "Stack"]

VERBS = ("up", "preview", "refresh", "destroy")
_AFTER_INTERRUPTION = {
    "up": "Created resources are kept. Run the command again to continue",
    "preview": "Nothing was changed. Run the command again",
    "refresh": "The state read so far is kept. Run the command again",
    "destroy": "The remaining resources are kept. Run the command again to continue",
}
_BUCKET, _EKS = "aws:s3/bucket:Bucket", "aws:eks/cluster:Cluster"
_TUNING = {
    # The engine lives for a minute, so garbage collection would take more time than its memory is worth.
    "GOGC": "400",
}
# At most what EKS itself takes, where the local cloud takes as long.
_EKS_UPDATE_SECONDS = 900
_POLL_SECONDS = 0.1
_SALT = re.compile(r"^encryptionsalt:.*$", re.MULTILINE)
# Settings of the backend of the user's own stack: its passphrase, or its AWS KMS key.
_OF_ITS_BACKEND = re.compile(r"^(encryptionsalt|secretsprovider|encryptedkey):.*$\n?", re.MULTILINE)


class Stack:
    """One stack of the repository on one local cloud."""

    def __init__(
        self,
        cloud: LocalCloud,
        name: str,
        *,
        root: Path,
        say: Callable[[str], None] = lambda _: None,
        wait: bool = True,
        starting: Starting | None = None,
    ) -> None:
        """Wait where Pulumi is running on the stack, or with wait=False give up.

        starting: services of the local cloud that are still starting; a run ends if one of them fails.
        """
        self._say, self._wait, self._starting = say, wait, starting or Starting(cloud)
        self._cloud, self._name, self._root = cloud, name, root
        # Only Pulumi needs it; a stack that only the organization file describes has none.
        self._settings_of_users = root / "stacks" / f"Pulumi.{name}.yaml"
        self._project = cloud.folder / "project"
        self.environment = {**_TUNING, **os.environ, **self._variables(environment(cloud))}
        self._pulumi = PulumiStack(name, root=self._project, environment=self.environment)

    @property
    def log(self) -> Path:
        """The file that a run with `show` writes Pulumi's output to."""
        return self._cloud.log("pulumi")

    def run(self, verb: str, *extra: str, show: Callable[[EngineEvents], None] | None = None) -> int:
        """Run one of VERBS without questions; return Pulumi's exit code.

        show: called several times a second with the engine's progress; Pulumi's output then goes to `log`. Without it,
        the output is written to this process's output.

        `destroy` deletes the entire stack, including protected resources: ask first.

        After one Ctrl-C, Pulumi finishes the running operations; after a second one, it doesn't. Both raise
        InterruptionError. The end of the local cloud raises ToolError.
        """
        self._await_others()
        self._prepare()
        if verb == "destroy":
            self.lift_protection()
        command = ["pulumi", verb, *self._confirmed(verb), *self._which(), "--non-interactive", *extra]
        ended = self._run(command, verb, show)
        if ended.gone:
            raise ToolError(ended.gone)
        if ended.interrupted:
            # Pulumi can exit with 0 after an interruption that left resources.
            name = self._cloud.name
            left = (
                "Nothing was created. Run the command again"
                if verb == "up" and self._is_empty()
                else _AFTER_INTERRUPTION[verb]
            )
            raise InterruptionError(
                f"{verb} was interrupted. {left}. The local cloud {name} keeps running. To stop it: hpkit local stop "
                f"--name {name}"
            )
        return ended.code

    def _confirmed(self, verb: str) -> Sequence[str]:
        """Return the options that skip Pulumi's questions.

        `up` of an existing stack starts with a preview: if that rejects the change, nothing is changed.
        """
        if verb == "preview":
            return ()
        return ("--yes",) if verb == "up" and not self._is_empty() else ("--yes", "--skip-preview")

    def _is_empty(self) -> bool:
        return not any(each.name == self._name for each in stacks_up(self._cloud))

    def _run(self, command: Sequence[str], verb: str, show: Callable[[EngineEvents], None] | None) -> Ended:
        stop_reason = self._watch(verb)
        if show is None:
            return run(command, self._root, self.environment, stop_reason=stop_reason)
        events = EngineEvents(
            self._project / "events.json", reads_of(self._cloud, self._name), is_preview=verb == "preview"
        )
        events.file.unlink(missing_ok=True)

        def watch(interrupted: bool) -> None:
            events.read()
            events.interrupted = interrupted
            show(events)

        # Pulumi hides this option by default; its Automation API uses it in the same way.
        environment = {**self.environment, "PULUMI_DEBUG_COMMANDS": "true"}
        logged = [*command[:2], "--event-log", str(events.file), *command[2:]]
        ended = run(logged, self._root, environment, stop_reason=stop_reason, log=self.log, watch=watch)
        watch(ended.interrupted)
        events.file.unlink(missing_ok=True)
        return ended

    def ending(self) -> Teardown:
        """Return what is deleted with the stack, and what blocks that."""
        return teardown_of(self._name, self._export())

    def lift_protection(self) -> None:
        """Unprotect everything, as `protect: false` and an `up` would: the engine, the bucket, and EKS at the endpoint.

        Pods and jobs that use the stack's claims are deleted, because Kubernetes would keep the claims while they
        exist. Only for the local cloud, where nothing is lost that can't be created again.
        """
        state = self._export()
        self._delete_holders(teardown_of(self._name, state))
        resources = state.get("deployment", {}).get("resources") or []
        if _let_go(resources):
            self._pulumi.write_state(state)
        for resource in resources:
            if resource["type"] == _EKS and resource.get("outputs", {}).get("deletionProtection"):
                # Its own region: the local cloud's environment names only where most calls go.
                self._let_eks_go(str(resource["id"]), str(resource["outputs"]["arn"]).split(":")[3])

    def _delete_holders(self, ending: Teardown) -> None:
        if not ending.eks:
            return
        from hpkit_local.kubernetes.api import Api

        api = Api.of_kubeconfig(self._cloud.kubeconfig)
        try:
            for holder in holders(ending, api.find):
                self._say(f"{holder.words}: it is deleted first")
                api.delete(holder.path)
        except OSError as error:
            raise ToolError(
                f"the Kubernetes API of {self._cloud.name} didn't list what keeps the stack: {error}"
            ) from None
        finally:
            api.close()

    def _let_eks_go(self, name: str, region: str) -> None:
        """Turn off the deletion protection at the local endpoint, which rejects deletions as AWS does."""
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        eks = boto3.client(
            "eks",
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            region_name=region,
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
        )
        patience = {"Delay": 1, "MaxAttempts": _EKS_UPDATE_SECONDS}
        try:
            if eks.describe_cluster(name=name)["cluster"].get("deletionProtection"):
                eks.get_waiter("cluster_active").wait(name=name, WaiterConfig=patience)
                eks.update_cluster_config(name=name, deletionProtection=False)
                eks.get_waiter("cluster_active").wait(name=name, WaiterConfig=patience)
        except eks.exceptions.ResourceNotFoundException:
            return
        except (BotoCoreError, ClientError) as error:
            raise ToolError(f"the deletion protection of EKS cluster {name} can't be removed: {error}") from None

    def _watch(self, verb: str) -> Callable[[], str]:
        """Return a function that explains why the local cloud has changed: killed, or stopped by another command."""
        name, state = self._cloud.name, self._cloud.running()
        again = (
            "Existing resources are kept, unless the local cloud was reset. To continue: "
            f"hpkit local {verb} --stack {self._name}"
        )

        def stop_reason() -> str:
            if state is not None and state.supervisor.alive():
                problem = self._starting.problem()
                stop, start = (
                    f"hpkit local stop --name {name}",
                    f"hpkit local {verb} --stack {self._name} --name {name}",
                )
                return f"{verb} ended: {problem}. Start again: {stop} && {start}" if problem else ""
            if state is not None and self._cloud.has_record():
                why = f"the supervisor of the local cloud {name} was killed"
                return f"{verb} stopped, because {why}. {again} --name {name}"
            # Its supervisor can't write down what runs on a full disk, and ends.
            full = f": {problem}" if (problem := full_disk(self._cloud)) else ""
            return f"{verb} stopped, because the local cloud {name} was stopped{full}. {again} --name {name}"

        return stop_reason

    def read(self, *arguments: str) -> str:
        """Run a read-only Pulumi command, and return its output."""
        self._prepare()
        return self._pulumi.run(*arguments, "--stack", self._name)

    def _export(self) -> dict[str, Any]:
        self._prepare()
        return self._pulumi.export()

    def remove(self) -> None:
        """Forget the stack; Pulumi rejects while resources are in it."""
        self._pulumi.run("stack", "rm", "--yes", "--stack", self._name)

    def _which(self) -> Sequence[str]:
        return ("--stack", self._name, "--config-file", str(self._settings))

    @property
    def _settings(self) -> Path:
        return self._project / "stacks" / self._settings_of_users.name

    def _prepare(self) -> None:
        """Create the stack if it doesn't exist, copy the user's settings, and release a dead run's lock."""
        self._write_project()
        self._release()
        _link_language_host(tool_path("pulumi"), tool_path("pulumi-language-python"))
        salt = self._salt()
        if salt is None:
            self._carry("")
            if not any(there.name == self._name for there in stacks_of(self._cloud)):
                self._pulumi.run("stack", "init", self._name)
        else:
            self._carry(salt)
        if installed(self._cloud.folder / HOME) == OFFICIAL:
            self._lead_to_endpoint()

    def _lead_to_endpoint(self) -> None:
        """Set what leads Pulumi's own `aws` plugin to the local cloud, in the copy of the user's settings."""
        settings = endpoint_settings(self.environment["AWS_ENDPOINT_URL"])
        options = [word for path, value in settings.items() for word in ("--plaintext", f"{path}={value}")]
        self._pulumi.run("config", "set-all", *self._which(), "--path", *options)

    def _write_project(self) -> None:
        folder = self._settings.parent
        folder.mkdir(parents=True, exist_ok=True)
        project = {"name": pulumi_project(self._root)[0], "runtime": "python", "stackConfigDir": "stacks"}
        (self._project / "Pulumi.yaml").write_text(json.dumps(project), encoding="utf-8")

    def _salt(self) -> str | None:
        if not self._settings.is_file():
            return None
        found = _SALT.search(self._settings.read_text(encoding="utf-8"))
        return found.group() if found else None

    def _carry(self, salt: str) -> None:
        """Copy the user's settings, if any, without the parts that encrypt the secrets of the user's backend."""
        own = self._settings_of_users
        text = _OF_ITS_BACKEND.sub("", own.read_text(encoding="utf-8") if own.is_file() else "").rstrip()
        self._settings.write_text(f"{text}\n{salt}\n" if salt else f"{text}\n", encoding="utf-8")

    def _release(self) -> None:
        """Remove locks of runs that are dead: a killed Pulumi leaves them, and the next one would reject."""
        for lock, pid in self._locks():
            if not _runs(pid):
                lock.unlink(missing_ok=True)

    def _locks(self) -> Iterator[tuple[Path, int]]:
        """Yield the locks of Pulumi's runs on this machine, with the process that has each."""
        locks = self._cloud.state_folder / ".pulumi" / "locks"
        for lock in locks.rglob(f"{self._name}/*.json"):
            try:
                held = json.loads(lock.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if held.get("hostname") == socket.gethostname():
                yield lock, int(held.get("pid", 0))

    def _await_others(self) -> None:
        """Wait for a Pulumi that is at work: of a command that was killed, or started by hand."""
        for _, pid in self._locks():
            running = identify(pid) if pid > 0 else None
            if running is None:
                continue
            if not self._wait:
                raise ToolError(
                    f"Pulumi is running on {self._name} (process {pid}). Wait until it is done, or omit --no-wait"
                )
            self._say(f"waiting for Pulumi, which is running on {self._name} (process {pid})")
            while running.alive():
                time.sleep(_POLL_SECONDS)

    def _variables(self, base: Mapping[str, str]) -> dict[str, str]:
        # The program runs on this Python, regardless of the shell's active environment.
        own = str(Path(sys.executable).parent)
        return {**base, "PATH": os.pathsep.join([own, base["PATH"]])}


def _let_go(resources: Sequence[dict[str, Any]]) -> bool:
    """Unprotect resources in a state, and mark buckets to be deleted with their contents; return whether it changes."""
    is_changed = bool([each for each in resources if each.pop("protect", False)])
    for bucket in (each for each in resources if each["type"] == _BUCKET):
        for values in (bucket.get("inputs", {}), bucket.get("outputs", {})):
            is_changed = is_changed or not values.get("forceDestroy")
            values["forceDestroy"] = True
    return is_changed


def _link_language_host(pulumi: Path, language_host: Path) -> None:
    """Link the language host next to hpkit's Pulumi: the engine warns of one that it finds elsewhere."""
    if pulumi.parent == language_host.parent or pulumi.parents[3] != language_host.parents[3]:
        return
    for file in language_host.parent.iterdir():
        link = pulumi.parent / file.name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(file)


def _runs(pid: int) -> bool:
    return pid > 0 and identify(pid) is not None
