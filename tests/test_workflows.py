"""Workflows: pinned actions, minimal permissions, and no access to secrets for forks."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hpkit.changes.review.as_markdown import LIMIT, MARKER, as_markdown
from tests.builders import organization, text_of
from tests.changes.review.builders import review_of

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# Values that an attacker can choose: in a script, such a value could be a command.
UNTRUSTED = re.compile(
    r"\$\{\{[^}]*(github\.event\.|github\.head_ref|github\.base_ref|inputs\.|matrix\.|vars\.|steps\.)"
)
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")


def workflow(file):
    data = yaml.safe_load(file.read_text())
    # YAML 1.1 reads the key `on` as true.
    return {"on" if key is True else key: value for key, value in data.items()}


def triggers(data):
    on = data["on"]
    return {on} if isinstance(on, str) else set(on)


def jobs(file):
    return workflow(file)["jobs"].items()


def steps(file):
    return [step for _, job in jobs(file) for step in job["steps"]]


def test_there_are_workflows_for_each_purpose():
    names = {file.stem for file in FILES}
    assert names == {"ci", "pull-request", "review-comment", "deploy", "drift", "nightly", "outdated", "release"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_action_is_pinned_by_commit_with_its_version_beside_it(file):
    for line in file.read_text().splitlines():
        used = re.match(r"\s*(?:- )?uses: (\S+)(.*)", line)
        if used:
            assert PINNED.match(used[1]), line
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", used[2]), f"{line}: which version is that?"


def test_one_action_has_one_version_in_all_workflows():
    used = {step["uses"] for file in FILES for step in steps(file) if "uses" in step}
    names = [each.partition("@")[0] for each in used]
    assert len(names) == len(set(names)), sorted(used)


def test_drift_and_stacks_with_similar_names_do_not_lose_the_history_of_usage():
    drift = workflow(ROOT / ".github" / "workflows" / "drift.yml")["jobs"]["drift"]["steps"]
    names = [step.get("name", step.get("uses", "").partition("@")[0]) for step in drift]
    # actions/cache itself saves only if no later step fails.
    assert names.index("actions/cache/restore") < names.index("actions/cache/save") < names.index("Compare")
    restored, saved = (step["with"] for step in drift if step.get("uses", "").startswith("actions/cache/"))
    assert restored["key"] == saved["key"]
    # A key that begins with this one is restored: the key of `prod` must not begin that of `prod-2`.
    assert restored["restore-keys"].strip().endswith("matrix.stack }}/")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_rights_are_given_to_jobs_and_only_those_they_need(file):
    assert workflow(file)["permissions"] == {}
    for name, job in jobs(file):
        assert "permissions" in job, f"{name} would get the repository's default"
        assert isinstance(job["permissions"], dict), f"{name}: rights are named one by one"
        # Jobs that can't write built and signed what a tag's release offers.
        most = "write" if (file.name, name) == ("release.yml", "publish") else "read"
        assert job["permissions"].get("contents", "read") in ("read", most)
        assert job["timeout-minutes"] <= 240


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_long_lived_secret_is_used_and_no_workflow_trusts_a_pull_requests_code(file):
    text = file.read_text()
    assert "secrets." not in text
    assert "pull_request_target" not in text


# Source: GitHub's documentation, "Workflow syntax", `permissions`, and "Events that trigger workflows": these run only
# merged code; `workflow_dispatch` runs any branch unless a job checks it.
MERGED = {"push", "schedule", "workflow_dispatch"}
ON_MAIN = "github.ref == 'refs/heads/main'"
RUNS_FILES = re.compile(
    r"\b(make|python3?|pip|pipx|pulumi|go|node|npm|npx|bash|sh|source|eval|xargs)\b|(?:^|\s)\.{0,2}/(?!dev/null)",
    re.MULTILINE,
)


def unquoted(script):
    """Return a script without single-quoted parts, which belong to another program."""
    return re.sub(r"'[^']*'", "", script)


def needed(jobs, name):
    """Return a job and every job that it waits for."""
    needs = jobs[name].get("needs", [])
    return [name, *(above for each in ([needs] if isinstance(needs, str) else needs) for above in needed(jobs, each))]


def overpowered(data):
    """Yield the jobs of a workflow that run a change's code with permissions that the change's author doesn't have."""
    merged = triggers(data) <= MERGED and (data["on"].get("push") or {"branches": ["main"]}).get("branches") == ["main"]
    for name, job in data["jobs"].items():
        held = {right for right, access in job["permissions"].items() if access == "write"}
        uses = [step.get("uses", "") for step in job["steps"]]
        runs = any(RUNS_FILES.search(unquoted(step.get("run", ""))) for step in job["steps"])
        checks_out = any(each.startswith(("actions/checkout@", "./")) for each in uses)
        deploys = merged and held == {"id-token"} and "environment" in job
        guarded = any(ON_MAIN in str(data["jobs"][above].get("if")) for above in needed(data["jobs"], name))
        if (held or "environment" in job) and (runs or checks_out) and not (deploys and guarded):
            yield name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_job_that_holds_a_write_permission_or_an_identity_runs_code_of_a_change(file):
    assert list(overpowered(workflow(file))) == []


CHECKOUT = {"uses": "actions/checkout@0"}
OVERPOWERED = {
    "code scanning": (
        {"permissions": {"security-events": "write"}, "steps": [CHECKOUT, {"run": "make"}]}, "pull_request",
    ),
    "an environment": ({"permissions": {}, "environment": "x", "steps": [CHECKOUT]}, "merge_group"),
    "an artifact": ({"permissions": {"issues": "write"}, "steps": [{"run": "unzip it\n./it/run"}]}, "workflow_run"),
    "a local action": ({"permissions": {"packages": "write"}, "steps": [{"uses": "./own"}]}, "pull_request"),
    "a role of any branch": ({"permissions": {"id-token": "write"}, "environment": "x", "steps": [CHECKOUT]}, "push"),
    "a branch by hand": (
        {"permissions": {"id-token": "write"}, "environment": "x", "steps": [CHECKOUT]}, "workflow_dispatch",
    ),
    "a token to write": (
        {"permissions": {"contents": "write"}, "environment": "x", "if": ON_MAIN, "steps": [CHECKOUT]}, "schedule",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("job", "event"), OVERPOWERED.values(), ids=OVERPOWERED)
def test_a_job_that_runs_code_of_a_change_gets_more_than_its_author_has(job, event):
    assert list(overpowered({"on": {event: {"branches": ["**"]}}, "jobs": {"job": job}})) == ["job"]


def shell(data, job, step):
    """Return the command with which a runner runs a step's script.

    Source: GitHub's documentation, "Workflow syntax", `jobs.<job_id>.steps[*].shell`: without a shell it is `bash -e`.
    """
    given = [place.get("defaults", {}).get("run", {}).get("shell") for place in (job, data)]
    name = next((each for each in (step.get("shell"), *given) if each), None)
    commands = {None: ["bash", "-e"], "bash": ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail"]}
    return commands[name]


def has_pipe(script):
    """Return whether a script has a pipe."""
    return bool(re.search(r"(?<!\|)\|(?!\|)", unquoted(script)))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_fails_in_a_pipe_of_a_workflow_passes(file):
    data = workflow(file)
    scripts = [(job, step) for job in data["jobs"].values() for step in job["steps"] if "run" in step]
    assert [step["run"] for job, step in scripts if "pipefail" not in shell(data, job, step)] == []


def test_what_fails_in_a_pipe_of_a_page_passes():
    seen = 0
    template = ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml"
    for page in [template, ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for block in [text] if page == template else re.findall(r"```ya?ml\n(.*?)```", text, re.DOTALL):
            data = yaml.safe_load(block) if re.search(r"^\s*(?:- )?(?:run|script):", block, re.MULTILINE) else None
            jobs = data if isinstance(data, dict) else {}
            for job in jobs.get("jobs", jobs).values():
                if not isinstance(job, dict):
                    continue
                scripts = [step["run"] for step in job.get("steps", ()) if "run" in step]
                scripts += ["\n".join(job["script"])] if "script" in job else []
                seen += len(scripts)
                for script in filter(has_pipe, scripts):
                    assert re.match(r"set -[a-z]*o pipefail\n", script), f"{page.name}: {script}"
    assert seen > 8


def test_a_script_of_the_repository_goes_on_after_what_fails():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = {path: (ROOT / path).read_bytes() for path in tracked if (ROOT / path).is_file()}
    scripts = {path: text.decode() for path, text in texts.items() if re.match(rb"#!.*\b(ba)?sh\b", text)}
    assert ".ci/run" in scripts
    assert [path for path, text in scripts.items() if has_pipe(text) and "set -euo pipefail\n" not in text] == []


PREVIEWS = {
    "one that fails": "exit 1",
    "one that fails after it spoke": """echo '{"steps": [{"op": "same", "urn": "urn:a"}]}'; exit 1""",
    "one that says nothing": "exit 0",
    "one without steps": """echo '{"steps": []}'""",
    "one of an engine that writes something else": """echo '{"changeSummary": {}}'""",
}


def approve(tmp_path, preview):
    """Run the step that writes the steps to approve, with an engine whose preview is this script."""
    data = workflow(ROOT / ".github" / "workflows" / "deploy.yml")
    job = data["jobs"]["preview"]
    (step,) = [step for step in job["steps"] if step.get("name") == "Save the preview for approval"]
    (tmp_path / "pulumi").write_text(f"#!/bin/sh\n{preview}\n")
    (tmp_path / "pulumi").chmod(0o755)
    variables = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "STEPS": data["env"]["STEPS"],
        "STACK": "acme-dev",
    }
    variables["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary")
    command = [*shell(data, job, step), "-c", step["run"]]
    return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(not shutil.which("jq"), reason="the runner has jq")
@pytest.mark.parametrize("preview", PREVIEWS.values(), ids=PREVIEWS)
def test_nothing_is_approved_after(tmp_path, preview):
    assert approve(tmp_path, preview).returncode != 0


@pytest.mark.skipif(not shutil.which("jq"), reason="the runner has jq")
def test_a_preview_without_a_change_is_approved(tmp_path):
    result = approve(tmp_path, """echo '{"steps": [{"op": "same", "urn": "urn:a"}]}'""")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "approved.json").read_text()) == []


FAKE_GH = """#!/bin/sh
[ "$2" != list ] || { printf 'v0.2.0\\nv0.10.0\\nv0.1.0\\n'; exit; }
echo "$3" > index.html
tar -cz index.html
"""


@pytest.mark.skipif(not shutil.which("jq"), reason="the runner has jq")
def test_the_site_has_the_pages_of_each_release_and_opens_the_newest(tmp_path):
    command, script = github_script("release.yml", "versions", "A folder for each version")
    (tmp_path / "gh").write_text(FAKE_GH)
    (tmp_path / "gh").chmod(0o755)
    run_script(tmp_path, command, script, PATH=f"{tmp_path}:{os.environ['PATH']}")
    site = tmp_path / "site"
    versions = [each["version"] for each in json.loads((site / "versions.json").read_text())]
    assert versions == ["0.10.0", "0.2.0", "0.1.0"]
    assert [(site / version / "index.html").read_text() for version in versions] == [f"v{each}\n" for each in versions]
    assert "url=0.10.0/index.html" in (site / "index.html").read_text()


@pytest.fixture
def new_organization(tmp_path):
    """Return a project with two environments that no stack file names; `hpkit local` and `review` are fakes."""
    data = organization()
    data["environments"]["prod"] = {**data["environments"]["dev"], "region": "eu-west-1"}
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "stacks" / "acme.yaml").write_bytes(text_of(data))
    (tmp_path / "stacks" / "acme.policy.json").write_text("{}")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    command = tmp_path / ".venv" / "bin" / "hpkit"
    message = (
        """[ "$1" != local ] || { echo "$@" >> said; exit; }; [ "$1" != review ] || { cp review review.json; exit; }"""
    )
    real = f"exec {sys.executable} -c 'from hpkit.cli import main; main()'"
    command.write_text(f'#!/bin/sh\n{message}\n{real} "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run_script(folder, command, script, **variables):
    done = subprocess.run(
        [*command, "-c", script],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done


def github_script(file, job, name):
    """Return the command and the script of a step of a workflow."""
    data = workflow(ROOT / ".github" / "workflows" / file)
    (step,) = [step for step in data["jobs"][job]["steps"] if step.get("name", "").startswith(name)]
    return shell(data, data["jobs"][job], step), step["run"]


@pytest.mark.skipif(not shutil.which("jq"), reason="the runner has jq")
@pytest.mark.parametrize("where", ["GitHub", "GitLab"])
def test_affected_stacks_are_previewed_under_the_pack_also_without_stack_files(new_organization, gitlab, where):
    stacks = {"acme-dev": "added", "acme-prod": "unchanged", "acme-old": "removed"}
    reviewed = {"stacks": [{"stack": name, "status": status} for name, status in stacks.items()]}
    (new_organization / "review").write_text(json.dumps(reviewed))
    if where == "GitHub":
        command, script = github_script("pull-request.yml", "policy", "Preview the affected stacks")
    else:
        command, script = ["bash", "-e"], "\n".join(gitlab[1]["policy"]["script"])
    run_script(new_organization, command, script)
    said = (new_organization / "said").read_text().splitlines()
    previewed = [re.fullmatch(r"local preview --stack (\S+) --name \S+ -- (.*)", line).groups() for line in said]
    pack = "--policy-pack policies --policy-pack-config stacks/acme.policy.json"
    assert previewed == [("acme-dev", pack), ("acme-prod", pack)]


@pytest.mark.skipif(not shutil.which("jq"), reason="the runner has jq")
def test_a_stack_without_a_stack_file_is_not_deployed_and_a_notice_gives_the_reason(new_organization):
    stacks = [{"stack": f"acme-{name}", "status": "added"} for name in ("dev", "prod")]
    (new_organization / "review").write_text(json.dumps({"stacks": stacks}))
    (new_organization / "stacks" / "Pulumi.acme-dev.yaml").touch()
    output = new_organization / "output"
    done = run_script(
        new_organization,
        *github_script("deploy.yml", "stacks", "Changed stacks"),
        GITHUB_OUTPUT=str(output),
        STACK="",
        BEFORE="HEAD",
        GIT_DIR=str(ROOT / ".git"),
    )
    assert output.read_text() == 'stacks=["acme-dev"]\n'
    assert re.search(r"^::notice::acme-prod isn't deployed: stacks/Pulumi.acme-prod.yaml doesn't exist", done.stderr)


def test_the_gate_is_the_command_that_developers_run():
    assert ".ci/run" in [step.get("run") for step in steps(ROOT / ".github" / "workflows" / "ci.yml")]


def test_up_waits_for_its_preview_and_runs_in_the_environment_of_its_stack():
    data = workflow(ROOT / ".github" / "workflows" / "deploy.yml")["jobs"]
    assert "preview" in data["up"]["needs"]
    assert data["up"]["environment"] == "${{ matrix.stack }}"
    assert data["up"]["concurrency"]["cancel-in-progress"] is False, "an interrupted update leaves operations pending"
    assert data["up"]["strategy"]["max-parallel"] == 1


def test_the_review_compares_the_merge_with_what_it_is_merged_into():
    review = workflow(ROOT / ".github" / "workflows" / "pull-request.yml")["jobs"]["review"]
    assert review["steps"][0]["with"]["fetch-depth"] == 2, "without its parent git has nothing to compare with"
    scripts = [step["run"] for step in review["steps"] if "hpkit review" in step.get("run", "")]
    assert re.findall(r"--base (\S+)", scripts[0]) == ['"HEAD^1"'] * 3


class Comments:
    """The comment workflow's last step, run with a `gh` that records its requests."""

    def __init__(self, folder):
        self.folder = folder
        step = steps(ROOT / ".github" / "workflows" / "review-comment.yml")[-1]
        self.script = step["run"]
        (folder / "bin").mkdir()
        (folder / "review").mkdir()

    def post(self, text, *, comment=""):
        (self.folder / "review" / "review.md").write_text(text)
        gh = self.folder / "bin" / "gh"
        gh.write_text(
            f'#!/bin/sh\necho "$@" >> {self.folder}/calls\n'
            f'case "$*" in *--paginate*) echo "{comment}";; '
            f'*) cp "$RUNNER_TEMP/body.json" {self.folder}/sent.json;; esac\n'
        )
        gh.chmod(0o755)
        result = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", self.script],
            env={
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.folder),
                "REPOSITORY": "acme/infra",
                "NUMBER": "7",
                "RUN": "https://github.com/acme/infra/actions/runs/1",
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        return json.loads((self.folder / "sent.json").read_text())["body"], (self.folder / "calls").read_text()


@pytest.fixture
def comments(tmp_path):
    missing = [name for name in ("bash", "jq", "iconv") if not shutil.which(name)]
    if missing:
        pytest.skip(f"not here, but on GitHub's runners: {', '.join(missing)}")
    return Comments(tmp_path)


def test_a_review_becomes_a_comment_that_is_edited_the_next_time(comments):
    text = as_markdown(review_of(text_of(organization()), text_of(organization(groups=[]))))
    body, calls = comments.post(text)
    assert body.startswith(f"{MARKER}\n<sub>Written by [this run]")
    assert f"</sub>\n\n{MARKER}\n\n## " in body
    assert "--method POST repos/acme/infra/issues/7/comments" in calls
    _, calls = comments.post(text, comment="4711")
    assert "--method PATCH repos/acme/infra/issues/comments/4711" in calls


@pytest.mark.parametrize("text", ["@octocat " * 20_000 + "é", "a" + "é" * 40_000])
def test_a_comment_of_a_hostile_run_mentions_nobody_and_fits(comments, text):
    body, _ = comments.post(text)
    assert "@octocat" not in body
    assert len(body.encode()) < 65_536


def test_a_hostile_run_hides_who_wrote_its_comment_behind_a_comment_that_is_not_closed(comments):
    body, _ = comments.post("Approved by the platform team. <!--")
    assert "Written by [this run]" in body.rpartition("<!--")[0]


def test_the_longest_review_fits_with_what_the_workflow_adds(comments):
    body, _ = comments.post("é" * (LIMIT // 2))
    assert len(body.encode()) < 65_536


@pytest.fixture(scope="module")
def gitlab():
    data = yaml.safe_load((ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml").read_text())
    reserved = {"stages", "default", "variables"}
    jobs = {name: job for name, job in data.items() if name not in reserved and not name.startswith(".")}
    return data, jobs


def test_the_pipeline_for_gitlab_is_yaml_whose_stages_exist(gitlab):
    data, jobs = gitlab
    assert set(jobs) == {"validate", "base-rules", "policy", "review", "preview", "up", "drift"}
    assert {job["stage"] for job in jobs.values()} <= set(data["stages"])
    assert data["variables"]["GIT_DEPTH"] == 0


def test_no_job_of_a_merge_request_on_gitlab_has_a_token_or_a_role(gitlab):
    _, jobs = gitlab
    asked = {
        name: job
        for name, job in jobs.items()
        if any("merge_request_event" in str(rule.get("if")) for rule in job["rules"])
    }
    assert set(asked) == {"validate", "base-rules", "policy", "review"}
    for name, job in asked.items():
        assert "id_tokens" not in job, name
        assert "environment" not in job, name


def test_hooks_for_other_repositories_run_the_command_on_organization_files_only():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["entry"]) == ("hpkit-validate", "hpkit validate")
    own = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    (same,) = [each for each in own if each["id"] == hook["id"]]
    assert hook["files"] == same["files"]
    assert re.search(hook["files"], "stacks/handson.yaml")
    assert not re.search(hook["files"], "stacks/Pulumi.handson-dev.yaml"), "tools write that one"
    assert not re.search(hook["files"], "docs/stacks/handson.yaml")
