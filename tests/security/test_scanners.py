"""The input of independent scanners, and how their findings are compared with the answers."""

import re

import pytest

from hpkit.plan.derive import derive
from hpkit.program.recording import record
from tests import builders
from tests.security.scanners.documents import NOT_CONVERTED, converted, manifests, terraform
from tests.security.scanners.scan import FOLDER, ROOT, SCANNERS, Answer, Finding, compare, read_answers


@pytest.fixture(scope="module")
def recording():
    rows = {"vision": [{"instanceType": "ml.g5.12xlarge", "count": 2}]}
    teams = [builders.team("vision", members=["arn:aws:iam::123456789012:role/vision"])]
    return record(derive(builders.typed(builders.organization(teams=teams, allocations=rows)), "dev"))


def test_a_resource_is_made_that_no_scanner_is_shown(recording):
    aws, objects, neither = converted([recording])
    shown = sum(len(named) for named in aws.values()) + len(objects)
    hidden = [each for each in recording.resources.values() if each.type in neither]
    assert shown + len(hidden) == len(recording.resources)
    assert all(any(each.startswith(prefix) for prefix in NOT_CONVERTED) for each in neither)
    assert not any(each.startswith("aws:") for each in neither)


def test_a_bad_setting_is_lost_on_the_way_to_a_scanner(recording):
    aws, objects, _ = converted([recording])
    text = terraform(aws)
    assert 'resource "aws_s3_bucket" "acme-dev--lifecycle" {' in text
    block = text.partition('"aws_s3_bucket_public_access_block" "acme-dev--lifecycle" {')[2].partition("\n}")[0]
    assert "block_public_acls = true" in block
    assert "bucket = aws_s3_bucket.acme-dev--lifecycle.id" in block, "by which a scanner sees what belongs together"
    encrypted = text.partition('"aws_s3_bucket_server_side_encryption_configuration" ')[2].partition("\n}")[0]
    assert re.search(
        r"rule \{\n.*apply_server_side_encryption_by_default \{\n\s+sse_algorithm = ", encrypted, re.DOTALL
    )
    assert "$${aws:PrincipalAccount}" in text or "${aws:" not in text, "IAM's variables are no references"
    assert text.count("{") - text.count("\\{") >= text.count("\nresource")
    assert "kind: ValidatingAdmissionPolicyBinding" in manifests(objects)
    assert "pod-security.kubernetes.io/enforce: baseline" in manifests(objects)


def test_a_new_finding_and_an_answer_that_nothing_needs_any_more_go_unseen():
    findings = {Finding("bandit", "B1", "local/a.py"), Finding("bandit", "B2", "local/a.py")}
    answers = [Answer("bandit", "B1", "local/*", "why"), Answer("checkov", "B2", "*", "why")]
    assert compare(findings, answers) == ([Finding("bandit", "B2", "local/a.py")], [answers[1]])
    assert compare(findings, [Answer("bandit", "B1", "*", "why"), Answer("bandit", "B2", "local/a.py", "why")]) == (
        [],
        [],
    )


def test_an_answer_is_given_twice_or_without_a_reason():
    answers = read_answers()
    assert {each.scanner for each in answers} <= set(SCANNERS)
    assert len({(each.scanner, each.rule, each.resource) for each in answers}) == len(answers)
    assert all(len(each.reason) > 20 for each in answers)


def test_a_scanner_is_another_one_than_was_meant():
    lock = (FOLDER / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.findall(
        r"^([a-z0-9._-]+)==\S+(?: ; .+)? \\\n    --hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE | re.IGNORECASE
    )
    assert len(pinned) == len(re.findall(r"^\S+==", lock, re.MULTILINE)), "each by its hash"
    assert set(SCANNERS) - {"kube-score"} <= set(pinned)
    sums = (FOLDER / "kube-score" / "go.sum").read_text(encoding="utf-8")
    assert re.search(r"^github\.com/zegl/kube-score v\S+ h1:", sums, re.MULTILINE)
    assert re.fullmatch(r"[0-9a-f]{40}\n", (FOLDER / "semgrep-rules.commit").read_text(encoding="utf-8"))
    gate = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (version,) = re.findall(r"^zizmor==(\S+)", lock, re.MULTILINE)
    assert f"zizmor=={version} " in gate, "the same by day"
