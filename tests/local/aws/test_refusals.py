"""Every refusal of the local AWS endpoint has a source and a test."""

import ast
import re
from functools import cache

import yaml

from generate.refusals import CERTAINTIES, DATA, depended_rules, proofs, refusals
from hpkit.project import project_root
from hpkit_local.aws.protocol import service_model

ROOT = project_root()
# Codes that no operation's model lists, since all operations of their service share them.
COMMON = {
    *("ValidationException", "SerializationException", "InvalidParameterValue", "MalformedXML"),
    # EC2's API model lists no error at all; its codes are on the page of error codes.
    *("VpcLimitExceeded", "AddressLimitExceeded", "InvalidVpc.Range", "InvalidSubnet.Range", "DependencyViolation"),
    "InvalidServiceName",
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
    return {entry["rule"]: entry["test"] for entry in depended_rules()}


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
        or proof.certainty not in CERTAINTIES
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
    services = ("amp", "ec2", "eks", "events", "fsx", "grafana", "iam", "kms", "logs", "pricing", "s3", "sagemaker")
    known = {
        shape.error_code
        for service in services
        for name in service_model(service).shape_names
        for shape in [service_model(service).shape_for(name)]
        if getattr(shape, "metadata", {}).get("exception")
    }
    codes = {each.code for each in refusals() if re.fullmatch(r"[A-Za-z.]+", each.code)}
    assert codes - known - COMMON == set()


def test_the_file_names_what_it_says_once():
    names = [group["at"] for group in yaml.safe_load((ROOT / DATA).read_text(encoding="utf-8"))]
    assert len(names) == len(set(names))
