"""What a GitLab user gains who can push a branch or open a merge request: its pipeline, as data."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

from tests.security.test_branches import ROOT

PIPELINE = (ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml").read_text(encoding="utf-8")
MAIN = {"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": "main"}
EVENTS = {
    "a push to main": {**MAIN, "CI_PIPELINE_SOURCE": "push"},
    "a schedule of main": {**MAIN, "CI_PIPELINE_SOURCE": "schedule"},
    "main by hand": {**MAIN, "CI_PIPELINE_SOURCE": "web"},
    "main by a trigger": {**MAIN, "CI_PIPELINE_SOURCE": "trigger"},
    "a merge request": {"CI_DEFAULT_BRANCH": "main", "CI_PIPELINE_SOURCE": "merge_request_event"},
    "a push to a branch": {**MAIN, "CI_COMMIT_BRANCH": "evil", "CI_PIPELINE_SOURCE": "push"},
    "a branch by hand": {**MAIN, "CI_COMMIT_BRANCH": "evil", "CI_PIPELINE_SOURCE": "web"},
    "a schedule of a branch": {**MAIN, "CI_COMMIT_BRANCH": "evil", "CI_PIPELINE_SOURCE": "schedule"},
    # A tag has no branch.
    "a tag": {"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_TAG": "main", "CI_PIPELINE_SOURCE": "push"},
}


@pytest.fixture(scope="module")
def jobs():
    found = yaml.safe_load(PIPELINE)
    return {name: job for name, job in found.items() if isinstance(job, dict) and "script" in job}


def holds(condition, event):
    """Evaluate an `if` of GitLab's rules, as far as the page uses them; an undefined variable is null."""

    def value(word):
        return event.get(word[1:]) if word.startswith("$") else word.strip('"')

    terms = [re.fullmatch(r'(\$\w+) == (\$\w+|"[^"]*")', each) for each in condition.split(" && ")]
    assert all(terms), condition
    return all(value(term[1]) == value(term[2]) for term in terms)


def run_for(jobs, event):
    return {name for name, job in jobs.items() if any(holds(rule["if"], EVENTS[event]) for rule in job["rules"])}


@pytest.mark.parametrize(
    ("event", "with_a_role"),
    [
        ("a push to main", {"preview", "up"}),
        ("a schedule of main", {"drift"}),
        ("main by hand", set()),
        ("main by a trigger", set()),
        ("a merge request", set()),
        ("a push to a branch", set()),
        ("a branch by hand", set()),
        ("a schedule of a branch", set()),
        ("a tag", set()),
    ],
)
def test_a_pipeline_of_gitlab_that_anybody_can_start_asks_for_a_role(jobs, event, with_a_role):
    assert {name for name in run_for(jobs, event) if "id_tokens" in jobs[name]} == with_a_role


def test_a_merge_request_of_gitlab_leaves_a_tool_in_the_cache_of_a_job_that_has_a_role(jobs):
    hold = {name for name, job in jobs.items() if "id_tokens" in job or "environment" in job}
    assert hold == {"preview", "up", "drift"}
    assert [name for name in hold if "cache" in jobs[name]] == []


def test_an_image_of_gitlab_is_another_one_tomorrow(jobs):
    images = {str(job["image"]) for job in jobs.values() if "image" in job}
    images.add(yaml.safe_load(PIPELINE)["default"]["image"])
    assert len(images) == 1
    assert [image for image in images if not re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)] == []


def test_a_merge_request_of_gitlab_is_judged_by_its_own_judges(jobs, tmp_path):
    missing = [name for name in ("bash", "git", "find") if not shutil.which(name)]
    if missing:
        pytest.skip(f"not here, but in every image of a pipeline: {', '.join(missing)}")
    assert "base-rules" in run_for(jobs, "a merge request")
    assert jobs["base-rules"]["before_script"] == [], "the default one would run the change's code"

    def git(*words, folder):
        identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    def write(folder, texts):
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git("init", folder=origin)
    # It replaces an environment with the package in requirements.txt: the script that judges its own folder.
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/bash\nmkdir -p .venv/bin; install judge .venv/bin/hpkit; ln -s /bin/true .venv/bin/pip\n")
    python.chmod(0o755)
    judge = "#!/bin/bash\necho \"base $* $(cat stacks/*.yaml stacks/*.json | tr '\\n' ' ')\" >> ../said\n"
    write(origin, {"judge": judge, "stacks/acme.yaml": "old\n", "stacks/acme.policy.json": "strict\n"})
    write(origin, {"stacks/gone.yaml": "old\n"})
    git("add", ".", folder=origin)
    git("commit", "-m", "base", folder=origin)
    git("clone", str(origin), str(clone), folder=tmp_path)
    git("checkout", "-b", "evil", folder=clone)
    write(
        clone,
        {
            "judge": "#!/bin/bash\necho change ran >> ../said\n",
            "stacks/acme.yaml": "new\n",
            "stacks/acme.policy.json": "lax\n",
        },
    )
    (clone / "stacks" / "gone.yaml").unlink()
    (clone / "stacks" / "link.yaml").symlink_to("/etc/passwd")
    git("add", ".", folder=clone)
    git("commit", "-m", "change", folder=clone)
    script = "\n".join(jobs["base-rules"]["script"])
    variables = {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    }
    done = subprocess.run(["bash", "-e", "-c", script], cwd=clone, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = (clone / "said").read_text().splitlines()
    assert said == ["base validate --policies new strict "]
    assert not (clone.parent / "said").exists(), "the change's own make ran"


def test_gitlab_deploys_something_else_than_what_was_approved(jobs):
    approved, deployed = ("\n".join(jobs[name]["script"]) for name in ("preview", "up"))
    asked = [re.search(r'pulumi preview .*"\$STEPS"', script)[0] for script in (approved, deployed)]
    assert len(set(asked)) == 1, "both say it in the same words"
    lines = jobs["up"]["script"]
    (compared,) = [place for place, line in enumerate(lines) if line.startswith('diff "approved-$STACK.json" ')]
    assert lines[compared + 1].startswith("pulumi up "), "GitLab ends a job with the first line that fails"
    assert compared == len(lines) - 2
    assert jobs["preview"]["artifacts"]["paths"] == ["approved-$STACK.json"]
    assert jobs["up"]["dependencies"] == ["preview"]
    assert all(rule["when"] == "manual" for rule in jobs["up"]["rules"])
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "deploy.yml").read_text())["env"]["STEPS"]
    assert "".join(yaml.safe_load(PIPELINE)["variables"]["STEPS"].split()) == "".join(steps.split())
