"""docs/guides/aws.md from its first step to its last on the local cloud, and the workflows that it describes.

First a new organization, then a changed one. The page's commands are typed, and the jobs for the pull request, the
deployment and the drift run step by step in separate checkouts. Whatever can't run here is listed with its reason.
"""

import copy
import os
import re
import shutil
import subprocess

import pytest
import yaml

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.builders import text_of
from tests.newcomer import steps_of
from tests.policies.builders import document, trust
from tests.program.cloud import WRITTEN_AT_THE_END, Live, Repository
from tests.running import AT_ONCE, running
from tests.security.test_new_organization import acme
from tests.test_workflows import ROOT, UNTRUSTED, shell, workflow

SECONDS = 900
PAGE = (ROOT / "docs" / "guides" / "aws.md").read_text(encoding="utf-8")
STACK, BUCKET = "acme-dev", "s3://acme-pulumi-state?region=us-west-2"
WORKFLOWS = ("pull-request.yml", "deploy.yml", "drift.yml")
# A block of the page, by its beginning, or a job of a workflow → why it can't run here.
NOT_HERE = {
    "gh api --method PUT repos/acme/platform/actions/oidc": "it sets up a repository at GitHub",
    "hpkit aws images --stack acme-prod --mirror": "it copies from registries of the internet, by crane or skopeo",
    "aws resourcegroupstaggingapi": "the local endpoint does not have this API",
    ("drift.yml", "report"): "it opens an issue at GitHub",
    ("pull-request.yml", "code-scanning"): "it uploads to GitHub, and has no script",
}
# Sections of the page with commands. Each is typed; the steps are typed again after a change.
SECTIONS = (
    "Steps",
    "A network without internet",
    "Delete the stack",
    "Deploy from GitHub Actions",
)


def section(name):
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def commands(text):
    """Return the commands of the blocks for a shell."""
    return [step.command for step in steps_of(text)]


def runs(file, job):
    return [step for step in workflow(ROOT / ".github" / "workflows" / file)["jobs"][job]["steps"] if "run" in step]


def test_every_block_of_the_page_is_typed_here_or_named_with_its_reason():
    typed = [command for name in SECTIONS for command in commands(section(name))]
    assert sorted(typed) == sorted(commands(PAGE)), "a section with commands that none of SECTIONS names"
    for name in NOT_HERE:
        there = any(each.startswith(name) for each in typed) if isinstance(name, str) else name[0] in WORKFLOWS
        assert there, f"{name} is not there any more"
    assert set(re.findall(r"```(\w+)\n", PAGE)) == {"console", "json", "yaml"}


def test_every_file_that_the_steps_name_is_made_by_a_step_before_it():
    typed = "\n".join(commands(section("Steps")))
    # Step 2 asks the user to copy an example; Pulumi writes the stack's own file at step 3.
    assert set(re.findall(r"stacks/[\w.-]+", typed)) == {"stacks/acme.yaml"}
    assert "hpkit validate --policies stacks/acme.yaml" in typed


class Platform:
    """A repository at a forge, a working copy of it, runners, and the local cloud as the account."""

    def __init__(self, folder, instance):
        self.folder, self.instance = folder, instance
        self.origin, self.work = folder / "origin", folder / "work"
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "HPKIT_STACK"))},
            **control.shell_environment(instance),
            "HPKIT_STACK": "",
            **WRITTEN_AT_THE_END,
            # A user who types `yes` when Pulumi asks.
            "PULUMI_SKIP_CONFIRMATIONS": "true",
            "https_proxy": "http://127.0.0.1:9",
            "no_proxy": "127.0.0.1,localhost",
        }
        # The page uses its own backend, and encrypts secrets with a key.
        del self.variables["PULUMI_BACKEND_URL"], self.variables["PULUMI_CONFIG_PASSPHRASE"]
        endpoint = self.variables["AWS_ENDPOINT_URL"]
        # For these two, Pulumi accepts no endpoint from the environment; and the local one has no host name per bucket.
        self.local = {
            "alias/pulumi-secrets?": f"alias/pulumi-secrets?endpoint={endpoint}&",
            "state?": f"state?endpoint={endpoint}&s3ForcePathStyle=true&",
        }
        self.typed, self.ran, self.jobs = [], [], 0
        self._key = ""

    def begin(self):
        self.work.mkdir()
        Repository(self.work)
        for file in (self.work / "stacks").glob("*.yaml"):
            file.unlink()
        (self.work / "policies").symlink_to(ROOT / "policies")
        for name in ("Makefile", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, self.work)
        ignored = ".venv\n.local\nreview\nhpkit.sarif\n*.json\n*.txt\n"
        (self.work / ".gitignore").write_text(ignored)
        self.git(self.work, "init", "-q", "-b", "main")
        self.commit("begin")

    def git(self, folder, *words):
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.com")
        done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, message):
        self.git(self.work, "add", "-A")
        self.git(self.work, "commit", "-qm", message)

    def execute(self, command, folder, variables):
        done = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done

    def localized(self, text):
        for there, here in self.local.items():
            text = text.replace(there, here)
        return text

    def type(self, command):
        """Type a command of the page in the working copy; return its standard output."""
        self.typed.append(command)
        line = self.localized(command).replace("<the key's id>", self._key)
        done = self.execute(["bash", "-c", line], self.work, self.variables)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        self._key = done.stdout.strip() if " create-key " in command else self._key
        return done.stdout

    def checkout(self, path, commit):
        """Do what actions/checkout does, with the environment that `make install` would create, without delay."""
        self.git(self.folder, "clone", "-q", str(self.work), str(path))
        self.git(path, "checkout", "-q", commit)
        if not (path / ".venv").exists():
            (path / ".venv").symlink_to((self.work / ".venv").resolve())
        for name in ("requirements.lock", "pyproject.toml"):
            os.utime(path / name, (0, 0))

    def run(self, file, job, head, expressions):
        """Run a job as its runner does, starting with its checkout; return the outputs of its steps."""
        data = workflow(ROOT / ".github" / "workflows" / file)
        spec, outputs = data["jobs"][job], {}
        self.jobs += 1
        runner = self.folder / f"job-{self.jobs}"
        runner.mkdir()
        path, workspace, paths = self.variables["PATH"], runner / "workspace", runner / "path"

        def value(text):
            known = {**expressions, **{f"steps.{name}": given for name, given in outputs.items()}}
            return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], str(text))

        for step in spec["steps"]:
            action = step.get("uses", "").partition("@")[0]
            ours = action in ("actions/checkout", "actions/upload-artifact", "actions/download-artifact")
            given = {name: value(each) for name, each in step.get("with", {}).items()} if ours else {}
            if action == "actions/checkout":
                self.checkout(workspace / given.get("path", ""), given.get("ref", head))
            elif action == "actions/upload-artifact":
                self.copied(workspace / given["path"], self.folder / "artifacts" / given["name"] / given["path"])
            elif action == "actions/download-artifact":
                for each in (self.folder / "artifacts" / given["name"]).iterdir():
                    self.copied(each, workspace / each.name)
            if "run" not in step:
                continue
            assert not UNTRUSTED.search(step["run"])
            environment = {**data.get("env", {}), **spec.get("env", {}), **step.get("env", {})}
            kept = paths.read_text().splitlines() if paths.exists() else []
            variables = {
                **self.variables,
                **{name: value(each) for name, each in environment.items()},
                "PATH": os.pathsep.join([*reversed(kept), path]),
                "GITHUB_OUTPUT": str(runner / "output"),
                "GITHUB_PATH": str(paths),
                "GITHUB_STEP_SUMMARY": str(runner / "summary"),
            }
            variables = {name: each for name, each in variables.items() if each or name in environment}
            (runner / "output").write_text("")
            done = self.execute([*shell(data, spec, step), "-c", step["run"]], workspace, variables)
            assert done.returncode == 0, f"{file} {job}: {step['run']}\n{done.stdout}{done.stderr}"
            self.ran.append((file, job, step["run"]))
            lines = (runner / "output").read_text().splitlines()
            pairs = [line.partition("=") for line in lines]
            outputs |= {f"{step['id']}.outputs.{name}": each for name, _, each in pairs if "id" in step}
        return outputs

    @staticmethod
    def copied(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)

    def pull_request(self, name):
        """Commit changes on a branch, run the jobs of its pull request, and merge it."""
        base = self.git(self.work, "rev-parse", "main")
        self.git(self.work, "checkout", "-qb", name)
        self.commit(name)
        self.git(self.work, "checkout", "-q", "main")
        self.git(self.work, "merge", "-q", "--no-ff", name, "-m", f"merge {name}")
        merge = self.git(self.work, "rev-parse", "main")
        for job in ("validate", "base-rules", "policy", "review"):
            self.run("pull-request.yml", job, merge, {"github.event.pull_request.base.sha": base})
        return base, merge

    def deploy(self, base, merge):
        """Run the deployment jobs of a push; return what was approved."""
        given = {
            "github.event.before": base,
            "inputs.stack": "",
            "matrix.stack": STACK,
            "vars.PULUMI_BACKEND_URL": self.localized(BUCKET),
        }
        stacks = self.run("deploy.yml", "stacks", merge, given)
        assert stacks == {"stacks.outputs.stacks": f'["{STACK}"]'}
        self.run("deploy.yml", "preview", merge, given)
        self.run("deploy.yml", "up", merge, given)
        return yaml.safe_load((self.folder / "artifacts" / f"approved-{STACK}" / "approved.json").read_text())

    def drift(self, merge):
        given = {"matrix.stack": STACK, "vars.PULUMI_BACKEND_URL": self.localized(BUCKET)}
        assert self.run("drift.yml", "stacks", merge, given) == {"stacks.outputs.stacks": f'["{STACK}"]'}
        self.run("drift.yml", "drift", merge, given)
        usage = (self.folder / "artifacts" / f"usage-{STACK}" / "usage" / f"{STACK}.jsonl").read_text()
        assert '"node"' in usage


def organization(count):
    """Return the page's organization, adapted to the local cloud; acme-prod is for its images."""
    data = acme(count)
    dev = data["environments"]["dev"]
    dev["eks"]["endpoint"]["publicCidrs"] = ["203.0.113.0/24"]
    dev["cluster"]["name"] = "handson"
    prod = copy.deepcopy(dev)
    prod["cluster"]["name"] = "handson-prod"
    prod["network"]["vpcCidr"] = "10.193.0.0/16"
    for number, zone in enumerate(prod["network"]["zones"], 11):
        zone["nodeCidr"] = f"10.{number}.0.0/16"
    data["environments"]["prod"] = prod
    return text_of(data)


@pytest.fixture
def platform(tmp_path):
    with running("aws-page", tmp_path / "cloud", *AT_ONCE, engine=True) as instance:
        platform = Platform(tmp_path, instance)
        platform.begin()
        yield platform
        for folder in tmp_path.glob("job-*/workspace/.local/*"):
            control.reset(Instance.named(folder.name, root=folder.parents[1]))


@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_page_and_its_workflows_lead_a_new_and_a_changed_organization_through(platform):
    live = Live(platform.instance)
    live.client("iam").create_role(RoleName="ada", AssumeRolePolicyDocument=document(trust()))
    steps = commands(section("Steps"))
    up = next(number for number, command in enumerate(steps) if command.startswith("pulumi up "))
    again = next(number for number, command in enumerate(steps) if command.startswith("hpkit validate "))
    for name, count, first in (("new", 4, 0), ("changed", 6, again)):
        (platform.work / "stacks" / "acme.yaml").write_bytes(organization(count))
        for command in steps[first:up]:
            if name == "new" or " stack init " not in command:
                platform.type(command)
        base, merge = platform.pull_request(name)
        # The page's `pulumi up` creates a new organization, and the workflow's `pulumi up` changes it.
        if name == "new":
            platform.type(steps[up])
        approved = platform.deploy(base, merge)
        assert (approved == []) is (name == "new"), approved
        said = [platform.type(command) for command in steps[up:]]
        assert "update-kubeconfig" in said[-1]
        groups = live.sm.describe_cluster(ClusterName="handson")["InstanceGroups"]
        assert next(each for each in groups if each["InstanceGroupName"] == "gpu")["CurrentCount"] == count
        platform.drift(merge)
    elsewhere = tuple(name for name in NOT_HERE if isinstance(name, str))
    for command in commands(PAGE.partition("\n## A network without internet\n")[2]):
        if not command.startswith(elsewhere):
            assert platform.type(command), command
    assert {command for command in commands(PAGE) if not command.startswith(elsewhere)} == set(platform.typed)
    jobs = {(file, job) for file in WORKFLOWS for job in workflow(ROOT / ".github" / "workflows" / file)["jobs"]}
    wanted = {(file, job, step["run"]) for file, job in jobs - NOT_HERE.keys() for step in runs(file, job)}
    assert wanted == set(platform.ran)
