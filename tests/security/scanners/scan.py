"""Independent scanners for hpkit and its resources: every finding is fixed, or explained in answers.yaml.

`make scan` runs them in a separate environment. It fails for a finding without an answer, and for an answer without a
finding.
"""

import fnmatch
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from hpkit.program.recording import record
from hpkit.project import select
from tests.security.scanners.documents import BETWEEN, converted, manifests, terraform

__all__ = ["SCANNERS", "Answer", "Finding", "compare", "read_answers", "write_documents"]

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
SCANNERS = ("bandit", "check-jsonschema", "checkov", "kube-score", "semgrep")
CODE = ("infra", "local", "policies", "whatif", "bench", ".ci")
# The semgrep rules for this repository's languages; the Makefile pins a commit.
RULES = ("python/boto3", "python/cryptography", "python/lang", "python/requests")
RULES += ("terraform/aws", "yaml/github-actions", "yaml/kubernetes")
# The grade of kube-score that is neither a warning nor critical.
_FINE = 7


@dataclass(frozen=True, order=True)
class Finding:
    """A scanner's finding: scanner, rule, and the resource or file."""

    scanner: str
    rule: str
    resource: str


@dataclass(frozen=True)
class Answer:
    """The reason why findings of a rule stay: `resource` is a pattern like those for file names."""

    scanner: str
    rule: str
    resource: str
    reason: str

    def is_of(self, finding):
        """Return whether this answers a finding."""
        same = (self.scanner, self.rule) == (finding.scanner, finding.rule)
        return same and fnmatch.fnmatchcase(finding.resource, self.resource)


def read_answers():
    """Return all answers of the file."""
    return [Answer(**each) for each in yaml.safe_load((FOLDER / "answers.yaml").read_text(encoding="utf-8"))]


def compare(findings, answers):
    """Return findings without an answer, and answers without a finding."""
    open_ = sorted(each for each in findings if not any(answer.is_of(each) for answer in answers))
    return open_, [answer for answer in answers if not any(answer.is_of(each) for each in findings)]


def write_documents(folder):
    """Write the examples' resources into a folder; return the types that it doesn't contain."""
    recordings = [record(plan) for loaded in select((), ()) for plan in loaded.plans.values()]
    aws, objects, neither = converted(recordings)
    (folder / "main.tf").write_text(terraform(aws), encoding="utf-8")
    (folder / "manifests.yaml").write_text(manifests(objects), encoding="utf-8")
    return neither


def write_examples(folder):
    """Write the pages' manifests for scientists into a folder, with their placeholders replaced."""
    for file in sorted((ROOT / "docs" / "examples").rglob("*.yaml")):
        shutil.copy(file, folder)


def _asked(binaries, tool, *words, folder=ROOT):
    """Return a scanner's output; exit codes for findings are expected, and all others raise an error."""
    done = subprocess.run([binaries / tool, *words], cwd=folder, capture_output=True, text=True, timeout=1800)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{tool} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}") from None


def _of_checkov(binaries, written):
    words = (
        *("--framework", "terraform", "kubernetes"),
        *("--output", "json", "--compact", "--quiet", "--skip-download"),
    )
    found = _asked(binaries, "checkov", "--directory", "created", *words, folder=written)
    reports = found if isinstance(found, list) else [found]
    assert {check["check_type"] for check in reports} == {"terraform", "kubernetes"}, "each has been read"
    for report in reports:
        assert report["results"].get("parsing_errors", []) == []
        for check in report["results"]["failed_checks"]:
            # The same finding in every example is reported once.
            kind, dot, name = check["resource"].partition(".")
            own = f"{kind}{dot}{name.rpartition(BETWEEN)[2]}" if kind.startswith("aws_") else check["resource"]
            yield Finding("checkov", check["check_id"], own)


def _of_kube_score(binaries, written):
    files = [str(file.relative_to(written)) for file in sorted(written.rglob("*.yaml"))]
    words = ("--output-format", "json", "--enable-optional-test", "container-seccomp-profile")
    scored = _asked(binaries, "kube-score", "score", *words, *files, folder=written)
    assert {"Job", "Deployment"} <= {result["type_meta"]["kind"] for result in scored}, "each has been read"
    for result in scored:
        resource = f"{result['type_meta']['kind']} {result['object_meta']['name']}"
        for check in result["checks"]:
            if not check["skipped"] and check["grade"] < _FINE:
                yield Finding("kube-score", check["check"]["id"], resource)


def _of_semgrep(binaries, written):
    merged = written / "rules.yaml"
    merged.write_text(_rules(binaries.parent / "semgrep-rules"), encoding="utf-8")
    words = ("--metrics", "off", "--disable-version-check", "--no-git-ignore", "--quiet", "--json", "--jobs", "2")
    words += ("--no-rewrite-rule-ids", "--config", str(merged))
    targets = (*CODE, ".github/workflows", str(written / "created"), str(written / "examples"))
    report = _asked(binaries, "semgrep", "scan", *words, *targets)
    assert [each for each in report["errors"] if each["level"] == "error"] == []
    assert {".py", ".tf", ".yaml", ".yml"} <= {Path(each).suffix for each in report["paths"]["scanned"]}
    for each in report["results"]:
        yield Finding("semgrep", each["check_id"], _place(Path(each["path"]), each["start"]["line"]))


def _rules(clone):
    """Return the rules in a clone as one file, because semgrep starts a process for each rule file."""
    files = [file for each in RULES for file in sorted((clone / each).rglob("*.yaml")) if ".test." not in file.name]
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    return json.dumps({"rules": [rule for each in documents if "rules" in each for rule in each["rules"]]})


def _place(file, line):
    """Return the Terraform resource that contains a line, or the file."""
    if file.suffix != ".tf":
        return file.name if file.is_absolute() else str(file)
    before = file.read_text(encoding="utf-8").splitlines()[:line]
    _, kind, _, name, _ = next(each for each in reversed(before) if each.startswith("resource ")).split('"')
    return f"{kind}.{name.rpartition(BETWEEN)[2]}"


def _of_bandit(binaries, _):
    report = _asked(binaries, "bandit", "--quiet", "--recursive", *CODE, "--format", "json")
    assert report["errors"] == []
    for each in report["results"]:
        yield Finding("bandit", each["test_id"], each["filename"].removeprefix("./"))


def _of_schemas(binaries, _):
    pipeline = ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml"
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for schema, files in (("gitlab-ci", [pipeline]), ("github-workflows", workflows)):
        words = ("--builtin-schema", f"vendor.{schema}", "--output-format", "json")
        # GitLab's own YAML tag, which refers to other jobs.
        words += ("--data-transform", "gitlab-ci") if schema == "gitlab-ci" else ()
        report = _asked(binaries, "check-jsonschema", *words, *files)
        for each in (*report.get("errors", ()), *report.get("parse_errors", ())):
            yield Finding("check-jsonschema", schema, f"{Path(each['filename']).name} {each.get('path', '')}".strip())


def main(binaries):
    """Run every scanner of an environment, and report open findings; return the exit status."""
    scans = (_of_bandit, _of_schemas, _of_checkov, _of_kube_score, _of_semgrep)
    with tempfile.TemporaryDirectory() as name:
        written = Path(name)
        for folder, write in (("created", write_documents), ("examples", write_examples)):
            (written / folder).mkdir()
            write(written / folder)
        findings = {finding for scan in scans for finding in scan(binaries, written)}
    unanswered, unused = compare(findings, read_answers())
    for finding in unanswered:
        print(f"no answer: {finding.scanner} {finding.rule} {finding.resource}")
    for finding in unused:
        print(f"no finding: {finding.scanner} {finding.rule} {finding.resource}: remove the answer `{finding.reason}`")
    counts = {name: sum(finding.scanner == name for finding in findings) for name in SCANNERS}
    print(", ".join(f"{name}: {count} findings" for name, count in counts.items()))
    return 1 if unanswered or unused else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
