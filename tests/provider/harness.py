"""A minimal engine: Pulumi's calls of the plugin, and the prerequisites that it needs."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from hpkit_local.aws.api import OPERATIONS
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.sagemaker.governance import version_of
from hpkit_local.aws.services.sagemaker.quota import QUOTA
from hpkit_provider.engine.plugin_server import OPTIONS
from hpkit_provider.engine.values import from_struct
from hpkit_provider.resources.governance import reserved_amounts
from hpkit_provider.server import HyperpodServicer
from tests.local.aws.conftest import GOVERNANCE
from tests.plugin import FailedError, PartlyFailedError, Plugin, served

PLUGIN = Path(sys.prefix) / "bin" / "pulumi-resource-hyperpod"
TYPE = "ml.g5.12xlarge"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-west-2"}


class Engine(Plugin):
    """State by name, and the call order of the real engine."""

    def __init__(self, stub):
        super().__init__(stub, "hyperpod:index")
        self.state = {}

    def check(self, token, inputs, *, name="r", old=None):
        answer = self.ask("Check", token, name, news=inputs, olds=old or {})
        return {failure.property: failure.reason for failure in answer.failures}

    def diff(self, token, name, inputs):
        return self.ask("Diff", token, name, news=inputs, **self._known(name))

    def _known(self, name):
        entry = self.state[name]
        return {"id": entry["id"], "olds": entry["outputs"], "old_inputs": entry["inputs"]}

    def up(self, token, name, inputs, *, timeout=600.0):
        """Check, diff, then make the required change."""
        failures = self.check(token, inputs, name=name)
        if failures:
            raise FailedError(str(failures))
        if name not in self.state:
            return self._create(token, name, inputs, timeout=timeout)
        diff = self.diff(token, name, inputs)
        if diff.replaces:
            self.delete(token, name)
            return self._create(token, name, inputs, timeout=timeout)
        if diff.changes == provider_pb2.DiffResponse.DIFF_SOME or self.state[name].get("errors"):
            return self._update(token, name, inputs, timeout=timeout)
        return self.state[name]

    def put(self, token, name, inputs, *, timeout=600.0):
        """Make only the change: its diff was computed before, as the engine does for parallel changes."""
        return (self._update if name in self.state else self._create)(token, name, inputs, timeout=timeout)

    @contextmanager
    def warnings(self):
        """Return the plugin's warnings during the block, in a list."""
        messages, log = [], self.servicer.log
        self.servicer.log = lambda severity, message, *_: messages.append(message) if severity == "warning" else None
        try:
            yield messages
        finally:
            self.servicer.log = log

    @contextmanager
    def _keeping(self, name):
        """Keep the state of a failed change."""
        try:
            yield
        except PartlyFailedError as error:
            kept = error.kept
            outputs, inputs = from_struct(kept.properties), from_struct(kept.inputs)
            self.state[name] = {"id": kept.id, "outputs": outputs, "inputs": inputs, "errors": list(kept.reasons)}
            raise

    def _create(self, token, name, inputs, *, timeout):
        with self._keeping(name):
            answer = self.ask("Create", token, name, properties=inputs, timeout=timeout)
        self.state[name] = {"id": answer.id, "outputs": from_struct(answer.properties), "inputs": inputs}
        return self.state[name]

    def _update(self, token, name, inputs, *, timeout):
        resource = self._known(name)
        with self._keeping(name):
            answer = self.ask("Update", token, name, news=inputs, timeout=timeout, **resource)
        self.state[name] = {"id": resource["id"], "outputs": from_struct(answer.properties), "inputs": inputs}
        return self.state[name]

    def delete(self, token, name, *, timeout=600.0):
        entry = self.state[name]
        self.ask("Delete", token, name, id=entry["id"], properties=entry["outputs"], timeout=timeout)
        del self.state[name]

    def read(self, token, name, resource_id, *, inputs=None, outputs=None):
        answer = self.ask("Read", token, name, id=resource_id, inputs=inputs or {}, properties=outputs or {})
        return answer.id, from_struct(answer.inputs), from_struct(answer.properties)

    def refresh(self, token, name):
        entry = self.state[name]
        found, inputs, outputs = self.read(token, name, entry["id"], inputs=entry["inputs"], outputs=entry["outputs"])
        if not found:
            del self.state[name]
            return None
        self.state[name] = {**entry, "inputs": inputs, "outputs": outputs}
        return self.state[name]

    def together(self, calls, *, threads=16):
        """Run callables in parallel; return what each returned or raised."""

        def run(call):
            try:
                return call()
            except FailedError as error:
                return error

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(run, calls))


@contextmanager
def in_process(**settings):
    """The plugin in this process, behind real gRPC."""
    servicer = HyperpodServicer()
    with served(servicer) as stub:
        engine = Engine(stub).configure(**settings)
        engine.servicer = servicer
        yield engine


class Process:
    """The plugin as the engine starts it: the executable in a separate process, which tests can kill."""

    def __init__(self, **settings):
        self.settings = settings
        self.engine = Engine(None)
        self.lock = threading.Lock()  # A kill happens before or after a start, never during it.
        self.child = None
        self.start()

    def start(self):
        with self.lock:
            if self.child is None or self.child.poll() is not None:
                self._start()

    def _start(self):
        env = {**os.environ, **CREDENTIALS}
        self.child = subprocess.Popen([PLUGIN, "--logflow"], stdout=subprocess.PIPE, env=env, text=True)
        port = int(self.child.stdout.readline())
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
        self.engine.stub = provider_pb2_grpc.ResourceProviderStub(self.channel)
        self.engine.configure(**self.settings)

    def kill(self):
        with self.lock:
            self.child.send_signal(signal.SIGKILL)
            self.child.wait()
            self.child.stdout.close()

    def stop(self):
        self.kill()
        self.channel.close()


class World:
    """What a HyperPod cluster requires: network, roles, EKS."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.endpoint, self.eks, self.sm = cloud.endpoint, cloud.eks, cloud.sm
        self.subnets, self.sg, self.eks_arn = cloud.subnets, cloud.sg, cloud.eks_arn
        self.roles = {"eks": cloud.eks_role, "node": cloud.node_role, "karpenter": cloud.karpenter_role}
        self.settings = {"region": "us-west-2", "endpoint": cloud.endpoint.url, "capacityWaitSeconds": "2"}

    def group(self, name="gpu", count=4, **more):
        return {
            "instanceGroupName": name,
            "instanceType": TYPE,
            "instanceCount": count,
            "executionRole": self.roles["node"],
            "lifeCycleConfig": {"sourceS3Uri": "s3://sagemaker-scripts", "onCreate": "on_create.sh"},
            **more,
        }

    def cluster(self, *groups, **more):
        return {
            "clusterName": "train",
            "instanceGroups": list(groups) or [self.group()],
            "vpcConfig": {"securityGroupIds": [self.sg], "subnets": self.subnets},
            "orchestrator": {"eks": {"clusterArn": self.eks_arn}},
            "nodeProvisioningMode": "Continuous",
            "nodeRecovery": "Automatic",
            **more,
        }

    def governed(self, engine, *groups, **more):
        """Create a cluster with the governance add-on; return its ARN."""
        arn = engine.up("Cluster", "c", self.cluster(*groups, **more))["id"]
        self.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)
        return arn

    def live_quotas(self, arn, measure="Count"):
        """Return whole instances, or another measure, by team."""
        return {
            name: sum(value for (_, found), value in amounts.items() if found == measure)
            for name, amounts in self.live_amounts(arn).items()
        }

    def live_amounts(self, arn):
        """Return what each quota reserves, by measure."""
        pages = self.sm.get_paginator("list_compute_quotas").paginate(ClusterArn=arn)
        entries = [entry for page in pages for entry in page["ComputeQuotaSummaries"]]
        return {entry["Name"]: reserved_amounts(entry["ComputeQuotaConfig"]) for entry in entries}


class Watch:
    """Continuously records the maximum live sum of one measure."""

    def __init__(self, endpoint, measure="Count"):
        self._client, self._measure, self.most, self.looks = endpoint.client("sagemaker"), measure, 0, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.wait(0.02):
            with suppress(self._client.exceptions.ClientError):
                self.most, self.looks = max(self.most, self._sum()), self.looks + 1

    def _sum(self):
        pages = self._client.get_paginator("list_compute_quotas").paginate(PaginationConfig={"PageSize": 100})
        reserved = [
            reserved_amounts(entry["ComputeQuotaConfig"]) for page in pages for entry in page["ComputeQuotaSummaries"]
        ]
        return sum(value for amounts in reserved for (_, name), value in amounts.items() if name == self._measure)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *caught):
        self._stop.set()
        self._thread.join()


def check_sums(monkeypatch, limits):
    """Make the service reject quotas that exceed limits of whole instances together; return the rejected operations."""
    refused = []

    def checked(name, original):
        def call(ctx, params):
            live = {
                key: reserved_amounts(version_of(entry, QUOTA, None)[1]["ComputeQuotaConfig"])
                for key, entry in ctx.table("quotas").items()
            }
            old = live.pop(params.get("ComputeQuotaId"), {})
            wanted = reserved_amounts(params.get("ComputeQuotaConfig", {}))
            for (instance_type, measure), value in wanted.items():
                used = sum(amounts.get((instance_type, measure), 0) for amounts in live.values())
                grows = value > old.get((instance_type, measure), 0)
                if measure == "Count" and grows and used + value > limits[instance_type]:
                    refused.append(name)
                    raise ServiceError("ResourceLimitExceeded", f"{used + value:g} of {limits[instance_type]} reserved")
            return original(ctx, params)

        return call

    for name in ("CreateComputeQuota", "UpdateComputeQuota"):
        operation = ("sagemaker", name)
        monkeypatch.setitem(OPERATIONS, operation, checked(name, OPERATIONS[operation]))
    return refused


def quota(arn, team, count, **more):
    return {
        "name": f"q-{team}",
        "clusterArn": arn,
        "computeQuotaConfig": {
            "computeQuotaResources": [{"instanceType": TYPE, "count": count}],
            "resourceSharingConfig": {"strategy": "LendAndBorrow", "borrowLimit": 50},
        },
        "computeQuotaTarget": {"teamName": team, "fairShareWeight": 10},
        **more,
    }


__all__ = [
    "TYPE",
    "Engine",
    "FailedError",
    "PartlyFailedError",
    "Process",
    "Watch",
    "World",
    "check_sums",
    "in_process",
    "quota",
]
