"""Every refusal of the local AWS endpoint has source and test; at night, each test fails without its refusal."""

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache

import pytest
import yaml

from generate.refusals import DATA, KNOWN, depended_rules, proofs, refusals
from hpkit.project import project_root
from hpkit_local.aws.protocol import service_model

ROOT = project_root()
# Codes that no operation's model lists, since all operations of their service share them.
COMMON = {
    *("ValidationException", "SerializationException", "InvalidParameterValue", "MalformedXML"),
    # EC2's API model lists no error at all; its codes are on the page of error codes.
    *("VpcLimitExceeded", "AddressLimitExceeded", "InvalidVpc.Range", "InvalidSubnet.Range", "DependencyViolation"),
    # Grafana's own API refuses by HTTP status and message alone.
    "Grafana",
    # The IAM user guide's page of common errors has this for every service.
    "MissingAuthenticationToken",
    # S3 names this for a bucket in its page of error codes; its model has it for no operation.
    "InvalidBucketName",
}


@cache
def functions(file: str) -> frozenset[str]:
    return frozenset(
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    )


def depended_tests():
    return {f"{each['where']}: {each['rule']}": each["test"] for each in depended_rules()}


def named_tests():
    return {key: proof.test for key, proof in proofs().items() if proof.test}


def test_every_refusal_is_in_the_table_and_the_table_has_no_other():
    assert [each.key for each in refusals()] == list(dict.fromkeys(each.key for each in refusals()))
    assert {each.key for each in refusals()} ^ proofs().keys() == set()


def test_every_refusal_has_a_source_and_a_test_or_says_why_not():
    lacking = [
        key
        for key, proof in proofs().items()
        if not proof.source.startswith("https://")
        or proof.known not in KNOWN
        or bool(proof.test) == bool(proof.untested)
    ]
    assert lacking == []


def test_every_named_test_exists():
    missing = []
    for key, test in {**named_tests(), **depended_tests()}.items():
        file, _, name = test.partition("::")
        if not (ROOT / file).is_file() or name.partition("[")[0] not in functions(file):
            missing.append((key, test))
    assert missing == []


def test_every_code_is_one_that_its_service_has():
    """A code that no service knows would be handled by no client."""
    services = ("amp", "ec2", "eks", "fsx", "grafana", "iam", "kms", "logs", "s3", "sagemaker")
    known = {
        shape.error_code
        for service in services
        for name in service_model(service).shape_names
        for shape in [service_model(service).shape_for(name)]
        if getattr(shape, "metadata", {}).get("exception")
    }
    codes = {each.code for each in refusals() if re.fullmatch(r"[A-Za-z.]+", each.code)}
    assert codes - known - COMMON == set()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_each_test_fails_without_its_refusal(tmp_path):
    """Run in rounds: a test that holds several refusals is run once for each."""
    at = {each.key: (each.file, each.line) for each in refusals()}
    left, green = sorted(named_tests().items()), []
    nothing_off = dict.fromkeys(named_tests().values(), ("", 0))
    assert set(_passed(nothing_off, tmp_path)) == nothing_off.keys(), "tests fail with nothing switched off"
    while left:
        this: dict[str, str] = {}
        for key, test in left:
            this.setdefault(test, key)
        left = [(key, test) for key, test in left if this[test] != key]
        green += [this[test] for test in _passed({test: at[key] for test, key in this.items()}, tmp_path)]
    assert green == []


def _passed(wanted: dict[str, tuple[str, int]], folder) -> list[str]:
    """Return the tests that pass although what they hold is switched off, and those that did not run."""
    plan, result = folder / "plan.json", folder / "result.xml"
    plan.write_text(json.dumps(wanted), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-q",
        "--tb",
        "no",
        "-p",
        "tests.local.aws.switched_off",
        "-rfE",
    ]
    done = subprocess.run(
        [*command, *sorted(wanted)],
        cwd=ROOT,
        env={**os.environ, "HPKIT_SWITCHED_OFF": str(plan), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    result.write_text(done.stdout, encoding="utf-8")
    failed = {line.split(" ", 1)[1].split(" - ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED ")}
    assert "error" not in done.stdout.splitlines()[-1], done.stdout
    return sorted(wanted.keys() - failed)


def test_the_file_names_what_it_says_once():
    names = [group["at"] for group in yaml.safe_load((ROOT / DATA).read_text(encoding="utf-8"))]
    assert len(names) == len(set(names))
