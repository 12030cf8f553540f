"""The program with the real engine: a repository to edit, a running instance, and the live resources on it."""

import contextlib
import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import yaml
from botocore.config import Config

from hpkit.errors import ToolError
from hpkit_local.kubernetes.api import Api
from hpkit_local.supervisor.local_cloud import LocalCloud
from hpkit_local.supervisor.pulumi_stack import Stack
from tests.examples import copy_examples
from tests.local.plugins.aws.inventory import inventory

__all__ = [
    "KUEUE",
    "NODE_CLASSES",
    "NODE_POOLS",
    "RBAC",
    "ROOT",
    "WRITTEN_AT_THE_END",
    "Live",
    "Program",
    "Repository",
    "change_every_part",
]

ROOT = Path(__file__).parents[2]
SECONDS = 900
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
NODE_CLASSES = "/apis/karpenter.sagemaker.amazonaws.com/v1/hyperpodnodeclasses"
FOLDERS = (
    "/api/v1/namespaces",
    "/api/v1/nodes",
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    f"{RBAC}/roles",
    f"{RBAC}/rolebindings",
    f"{KUEUE}/clusterqueues",
    f"{KUEUE}/localqueues",
    f"{KUEUE}/resourceflavors",
    f"{KUEUE}/cohorts",
    f"{KUEUE}/topologies",
    f"{KUEUE}/workloadpriorityclasses",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    NODE_POOLS,
    NODE_CLASSES,
)
# The engine writes the whole state after every step, which takes most of the time of an `up`. A test's run isn't
# killed, so writing it once at the end is enough; runs that are killed on purpose write it as usual.
WRITTEN_AT_THE_END = {"PULUMI_SKIP_CHECKPOINTS": "true"}
# Operations that change nothing.
_NOTHING = ("same", "refresh", "read")
# Names that AWS generates: identical resources differ in them, as in times and addresses.
GIVEN = re.compile(
    r"arn:aws:sagemaker:[a-z0-9-]+:\d+:[a-z-]+/[a-z0-9]{12}|\b(?:vpc|subnet|sg|sgr|rtb|igw|nat|eipalloc|vpce)-[0-9a-f]+"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\bi-[0-9a-f]{17}\b|https://[a-z0-9.:/-]+"
)


class Repository:
    """The program in a separate folder, with organization files that tests may edit."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copy(ROOT / "Pulumi.yaml", folder)
        copy_examples(folder)
        (folder / ".venv").symlink_to(sys.prefix)
        # Not a link itself, because the program searches for its project from its real folder.
        (folder / "infra").mkdir()
        shutil.copy(ROOT / "infra" / "__main__.py", folder / "infra")

    def read(self, organization):
        """Return an organization from the real repository, which tests change and write here."""
        return yaml.safe_load((ROOT / "stacks" / f"{organization}.yaml").read_text(encoding="utf-8"))

    def write(self, organization, data):
        text = yaml.safe_dump(copy.deepcopy(data), sort_keys=False)
        (self.folder / "stacks" / f"{organization}.yaml").write_text(text, encoding="utf-8")


def change_every_part(data, environment):
    """Change something in each part of a platform in place: tags, teams, policy, logs, nodes."""
    data["tags"] = {**data.get("tags", {}), "cost-center": "changed"}
    data["tags"].pop("project", None)
    for team in data["teams"]:
        team["fairShareWeight"] = 50
    data.setdefault("clusterPolicy", {})["idleResourceSharing"] = "Enabled"
    environment["eks"]["logRetentionDays"] = 30
    groups = environment["cluster"]["instanceGroups"]
    next(group for group in groups if group["instanceCount"])["instanceCount"] += 1


class Program(Stack):
    """One stack of a repository on one instance; Pulumi's output is kept.

    It uses no network: the dependencies chart is only recorded, unless its environment has HPKIT_MIRROR.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.environment |= {"https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1,localhost"}

    def command(self, verb, *options):
        """Return the command that starts Pulumi, ready to run."""
        self._prepare()
        return ["pulumi", verb, *self._which(), "--non-interactive", "--color", "never", *options]

    @property
    def settings_options(self):
        """Return the options that point Pulumi to the instance's settings."""
        return self._which()[2:]

    def start(self, verb, *options, log):
        """Start Pulumi in its own session, like a terminal's job."""
        command = self.command(verb, *options)
        return subprocess.Popen(
            command, cwd=self._root, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def run(self, verb, *options, check=True):
        command, environment = self.command(verb, *options), {**self.environment, **WRITTEN_AT_THE_END}
        done = subprocess.run(command, cwd=self._root, env=environment, capture_output=True, text=True, timeout=SECONDS)
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        assert not check or done.returncode == 0, said
        return done

    def up(self, *options, **more):
        return self.run("up", "--yes", "--skip-preview", *options, **more)

    def up_steps(self, *options):
        """Run `up`; return the operation of each change by `<type>:<name>`, as `preview` does."""
        events = [json.loads(line) for line in self.up("--json", *options).stdout.splitlines() if line.startswith("{")]
        steps = [event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event]
        named = {_short(step["urn"]): "replace" if "replace" in step["op"] else step["op"] for step in steps}
        return {name: op for name, op in named.items() if op not in _NOTHING}

    def refresh(self):
        return self.run("refresh", "--yes", "--skip-preview")

    def destroy(self, **more):
        self.unprotect()
        return self.run("destroy", "--yes", "--skip-preview", **more)

    def unprotect(self):
        """Unprotect what the engine protects, unless the cluster itself is protected."""
        ending = self.ending()
        if ending.rejection:
            raise ToolError(ending.rejection)
        if ending.protected:
            self.read("state", "unprotect", "--all", "--yes")

    def preview(self, *options):
        """Return the operation of each change by `<type>:<name>`."""
        return self.preview_with_warnings(*options)[0]

    def preview_with_warnings(self, *options):
        """Return the operations, and all warnings of the preview."""
        said = json.loads(self.run("preview", "--json", *options).stdout)
        named = {_short(step["urn"]): step["op"] for step in said["steps"]}
        warnings = "".join(each["message"] for each in said.get("diagnostics", ()) if each["severity"] == "warning")
        return {name: op for name, op in named.items() if op not in _NOTHING}, warnings

    def outputs(self):
        return json.loads(self.read("stack", "output", "--json"))

    def resources(self):
        """Return type and name of every resource in the state."""
        state = json.loads(self.read("stack", "export"))["deployment"]
        return sorted(_short(each["urn"]) for each in state.get("resources", []))


class Live:
    """The contents of a running instance, read with boto3 and from the API server."""

    def __init__(self, instance: LocalCloud, region: str = "us-west-2") -> None:
        self.cloud, self.region = instance, region
        self.url = f"http://127.0.0.1:{instance.ports()['aws']}"
        self.api = Api.of_kubeconfig(instance.kubeconfig, field_manager="somebody")
        self._clients = {}

    def client(self, service, *, session=("local", "local", None)):
        """Return a client, by default with the account's own user; session contains an assumed role's credentials."""
        key, secret, token = session
        name = (service, key)
        if name not in self._clients:
            self._clients[name] = boto3.client(
                service,
                region_name=self.region,
                endpoint_url=self.url,
                aws_access_key_id=key,
                aws_secret_access_key=secret,
                aws_session_token=token,
                config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
            )
        return self._clients[name]

    @property
    def sm(self):
        return self.client("sagemaker")

    def quotas(self):
        """Return the description of each quota by its team, without deleted quotas."""
        all_of_them = []
        for each in self.sm.list_compute_quotas(MaxResults=100)["ComputeQuotaSummaries"]:
            with contextlib.suppress(self.sm.exceptions.ResourceNotFound):
                all_of_them.append(self.sm.describe_compute_quota(ComputeQuotaId=each["ComputeQuotaId"]))
        return {each["Name"]: each for each in all_of_them}

    def policies(self):
        found = self.sm.list_cluster_scheduler_configs()["ClusterSchedulerConfigSummaries"]
        ids = [each["ClusterSchedulerConfigId"] for each in found]
        return [self.sm.describe_cluster_scheduler_config(ClusterSchedulerConfigId=each) for each in ids]

    def cluster(self):
        (only,) = self.sm.list_clusters()["ClusterSummaries"]
        return self.sm.describe_cluster(ClusterName=only["ClusterArn"])

    def everything(self):
        """Return everything by type: IDs in AWS, names on the API server."""
        return {**self.at_aws(), **self.objects()}

    def at_aws(self):
        """Return the resources in the region: IDs by type."""
        aws = {kind: ids for kind, ids in inventory(self).items() if ids}
        aws["clusters"] = [each["ClusterName"] for each in self.sm.list_clusters()["ClusterSummaries"]]
        aws["quotas"] = [each["Name"] for each in self.sm.list_compute_quotas()["ComputeQuotaSummaries"]]
        aws["policies of clusters"] = [each["Name"] for each in self.policies()]
        return aws

    def objects(self):
        return {folder: sorted(map(_name, self.api.items(folder, metadata_only=True))) for folder in FOLDERS}

    def settled(self):
        """Return everything that the stack configures, without names and times that AWS generates."""
        cluster = {k: v for k, v in self.cluster().items() if k not in ("CreationTime", "ResponseMetadata")}
        groups = [_plain(group) for group in cluster.pop("InstanceGroups")]
        described = {
            "cluster": _plain(cluster),
            "policies": [_plain(each) for each in self.policies()],
            "groups": sorted(groups, key=lambda group: group["InstanceGroupName"]),
            "quotas": {team: _plain(quota) for team, quota in self.quotas().items()},
            "counts": {kind: len(ids) for kind, ids in inventory(self).items()},
        }
        queues = {
            _name(item): item["spec"]
            for plural in ("clusterqueues", "localqueues")
            for item in self.api.items(f"{KUEUE}/{plural}")
        }
        names = self.objects()
        nodes = len(names.pop("/api/v1/nodes"))
        return {**described, "queues": queues, "objects": names, "nodes": nodes}


def _short(urn):
    """Return `<type>:<name>` of a URN, without parents and modules; EKS has its own name."""
    kind, _, name = urn.rpartition("::")
    kind = kind.rpartition("$")[2].rpartition("::")[2]
    return f"{'EksCluster' if kind == 'aws:eks/cluster:Cluster' else kind.rpartition(':')[2]}:{name}"


def _name(found):
    metadata = found["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


_TIMES = (
    "CreationTime",
    "LastModifiedTime",
    "ComputeQuotaVersion",
    "ComputeQuotaId",
    "ClusterSchedulerConfigId",
    "ClusterSchedulerConfigVersion",
    "ResponseMetadata",
    "CreatedBy",
    "LastModifiedBy",
)


# This only shows that something was changed and changed back.
_TRACES = {
    "Description": "",
    "KubernetesConfig": {"CurrentLabels": {}, "DesiredLabels": {}, "CurrentTaints": [], "DesiredTaints": []},
}


def _plain(value):
    kept = {k: v for k, v in value.items() if k not in _TIMES and _TRACES.get(k) != v}
    text = json.dumps(kept, default=str, sort_keys=True).replace('"Updated"', '"Created"')
    return json.loads(GIVEN.sub("<given>", text))
