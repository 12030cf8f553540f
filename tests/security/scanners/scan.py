"""Independent scanners on what the kit creates and on the kit: every finding is fixed, or answered in answers.yaml.

`make scan` runs them in an environment of their own. It fails for a finding without answer, and for an answer without
a finding.
"""

import fnmatch
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from hpkit.project import select
from hpkit.recording import record
from tests.security.scanners.documents import BETWEEN, converted, manifests, terraform

__all__ = ["SCANNERS", "Answer", "Finding", "compare", "read_answers", "write_documents"]

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
SCANNERS = ("bandit", "check-jsonschema", "checkov", "zizmor")
CODE = ("infra", "local", "policies", "bench", ".ci")


@dataclass(frozen=True, order=True)
class Finding:
    """What a scanner finds: its name, its rule, and the resource or file."""

    scanner: str
    rule: str
    resource: str


@dataclass(frozen=True)
class Answer:
    """Why findings of a rule stay: `resource` is a pattern as file names have it."""

    scanner: str
    rule: str
    resource: str
    reason: str

    def is_of(self, finding):
        """Say whether this answers a finding."""
        same = (self.scanner, self.rule) == (finding.scanner, finding.rule)
        return same and fnmatch.fnmatchcase(finding.resource, self.resource)


def read_answers():
    """Return all answers of the checked file."""
    return [Answer(**each) for each in yaml.safe_load((FOLDER / "answers.yaml").read_text(encoding="utf-8"))]


def compare(findings, answers):
    """Return findings without an answer, and answers without a finding."""
    open_ = sorted(each for each in findings if not any(answer.is_of(each) for answer in answers))
    return open_, [answer for answer in answers if not any(answer.is_of(each) for each in findings)]


def write_documents(folder):
    """Write what the examples create into a folder; return the types that are not in it."""
    recordings = [record(plan) for loaded in select((), ()) for plan in loaded.plans.values()]
    aws, objects, neither = converted(recordings)
    (folder / "main.tf").write_text(terraform(aws), encoding="utf-8")
    (folder / "manifests.yaml").write_text(manifests(objects), encoding="utf-8")
    return neither


def _asked(binaries, tool, *words, folder=ROOT):
    """Return what a scanner prints; findings are no failure of its, anything else is."""
    done = subprocess.run([binaries / tool, *words], cwd=folder, capture_output=True, text=True, timeout=1800)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{tool} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}") from None


def _of_checkov(binaries):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_documents(folder)
        words = (
            "--framework",
            "terraform",
            "kubernetes",
            "--output",
            "json",
            "--compact",
            "--quiet",
            "--skip-download",
        )
        found = _asked(binaries, "checkov", "--directory", ".", *words, folder=folder)
    reports = found if isinstance(found, list) else [found]
    assert {each["check_type"] for each in reports} == {"terraform", "kubernetes"}, "each has been read"
    for report in reports:
        assert report["results"].get("parsing_errors", []) == []
        for each in report["results"]["failed_checks"]:
            # The same of every example is one finding.
            kind, dot, name = each["resource"].partition(".")
            own = f"{kind}{dot}{name.rpartition(BETWEEN)[2]}" if kind.startswith("aws_") else each["resource"]
            yield Finding("checkov", each["check_id"], own)


def _of_bandit(binaries):
    report = _asked(binaries, "bandit", "--quiet", "--recursive", *CODE, "--format", "json")
    assert report["errors"] == []
    for each in report["results"]:
        yield Finding("bandit", each["test_id"], each["filename"].removeprefix("./"))


def _of_zizmor(binaries):
    for each in _asked(binaries, "zizmor", "--offline", "--quiet", "--format", "json", ".github/workflows"):
        if not each.get("ignored"):
            key = each["locations"][0]["symbolic"]["key"]["Local"]
            yield Finding("zizmor", each["ident"], Path(key.get("given_path") or key["prefix"]).name)


def _of_schemas(binaries):
    page = (ROOT / "docs" / "gitlab.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        pipeline = Path(name) / "gitlab-ci.yml"
        pipeline.write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
        workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for schema, files in (("gitlab-ci", [pipeline]), ("github-workflows", workflows)):
            words = ("--builtin-schema", f"vendor.{schema}", "--output-format", "json")
            # GitLab's own tag, of YAML that refers to other jobs.
            words += ("--data-transform", "gitlab-ci") if schema == "gitlab-ci" else ()
            report = _asked(binaries, "check-jsonschema", *words, *files)
            for each in (*report.get("errors", ()), *report.get("parse_errors", ())):
                yield Finding(
                    "check-jsonschema", schema, f"{Path(each['filename']).name} {each.get('path', '')}".strip()
                )


def main(binaries):
    """Run every scanner of an environment, and say what is open; return the exit status."""
    scans = {"bandit": _of_bandit, "check-jsonschema": _of_schemas, "checkov": _of_checkov, "zizmor": _of_zizmor}
    findings = {each for scanner in SCANNERS for each in scans[scanner](binaries)}
    unanswered, unused = compare(findings, read_answers())
    for each in unanswered:
        print(f"no answer: {each.scanner} {each.rule} {each.resource}")
    for each in unused:
        print(f"no finding: {each.scanner} {each.rule} {each.resource}: remove the answer `{each.reason}`")
    counts = {name: sum(each.scanner == name for each in findings) for name in SCANNERS}
    print(", ".join(f"{name}: {count} findings" for name, count in counts.items()))
    return 1 if unanswered or unused else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
