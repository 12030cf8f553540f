"""The evaluator of these tests, with the examples of the IAM user guide."""

import pytest

from tests.security.evaluation import Request, allows, decide

pytestmark = pytest.mark.nightly

ME = "arn:aws:iam::123456789012:role/me"


def document(effect="Allow", **members):
    return {"Statement": [{"Effect": effect, "Action": "s3:GetObject", "Resource": "*", **members}]}


def test_an_explicit_deny_wins_and_nothing_is_a_refusal():
    request = Request(ME, "s3:GetObject", "arn:aws:s3:::bucket/key")
    assert allows(request, identity=[document()])
    assert not allows(request, identity=[])
    assert not allows(request, identity=[document(), document("Deny")])
    assert not allows(request, identity=[document()], resource=document("Deny"))
    assert not allows(request, identity=[document()], boundary=document(Action="s3:PutObject"))


@pytest.mark.parametrize(
    ("members", "action", "resource", "applies"),
    [
        ({"Action": "s3:Get*"}, "s3:GetObject", "*", True),
        ({"Action": "S3:getobject"}, "s3:GetObject", "*", True),
        ({"Action": "s3:GetObj?ct"}, "s3:GetObject", "*", True),
        ({"NotAction": "iam:*"}, "s3:GetObject", "*", True),
        ({"NotAction": ["iam:*", "s3:*"]}, "s3:GetObject", "*", False),
        ({"Resource": "arn:aws:s3:::b/*"}, "s3:GetObject", "arn:aws:s3:::b/x/y", True),
        ({"Resource": "arn:aws:s3:::b/*"}, "s3:GetObject", "arn:aws:s3:::B/x", False),
        ({"NotResource": "arn:aws:s3:::b/*"}, "s3:GetObject", "arn:aws:s3:::b/x", False),
        ({"NotResource": "arn:aws:s3:::b/*"}, "s3:GetObject", "arn:aws:s3:::c/x", True),
        (
            {"Resource": "arn:aws:s3:::b/${aws:PrincipalAccount}/*"},
            "s3:GetObject",
            "arn:aws:s3:::b/123456789012/x",
            True,
        ),
        ({"Resource": "arn:aws:s3:::b/${aws:username}"}, "s3:GetObject", "arn:aws:s3:::b/", False),
    ],
)
def test_actions_and_resources_match_by_their_wildcards(members, action, resource, applies):
    statement = {"Effect": "Allow", "Resource": "*", **members}
    if "NotResource" in members:
        del statement["Resource"]
    if "NotAction" not in members:
        statement.setdefault("Action", "*")
    assert (decide({"Statement": statement}, Request(ME, action, resource)) == "Allow") is applies


TAG = "aws:ResourceTag/team"


@pytest.mark.parametrize(
    ("condition", "context", "expected"),
    [
        # Condition operators: an absent key fails, except for negated operators and IfExists.
        ({"StringEquals": {TAG: "a"}}, {}, False),
        ({"StringEquals": {TAG: ["a", "b"]}}, {TAG: "b"}, True),
        ({"StringEquals": {TAG: "a"}}, {TAG: "A"}, False),
        ({"StringEqualsIgnoreCase": {TAG: "a"}}, {TAG: "A"}, True),
        ({"StringNotEquals": {TAG: "a"}}, {}, True),
        ({"StringNotEquals": {TAG: ["a", "b"]}}, {TAG: "b"}, False),
        ({"StringEqualsIfExists": {TAG: "a"}}, {}, True),
        ({"StringEqualsIfExists": {TAG: "a"}}, {TAG: "b"}, False),
        ({"StringLike": {TAG: "a*"}}, {TAG: "ab/c"}, True),
        ({"StringNotLike": {TAG: "a*"}}, {TAG: "ab"}, False),
        ({"Bool": {"aws:SecureTransport": "false"}}, {"aws:SecureTransport": "false"}, True),
        ({"Bool": {"aws:SecureTransport": "false"}}, {}, False),
        ({"Null": {TAG: "true"}}, {}, True),
        ({"Null": {TAG: "true"}}, {TAG: "a"}, False),
        ({"Null": {TAG: "false"}}, {TAG: "a"}, True),
        (
            {"DateLessThan": {"aws:CurrentTime": "2026-12-01T18:00:00Z"}},
            {"aws:CurrentTime": "2026-12-01T17:00:00Z"},
            True,
        ),
        (
            {"DateLessThan": {"aws:CurrentTime": "2026-12-01T18:00:00Z"}},
            {"aws:CurrentTime": "2026-12-01T18:00:00Z"},
            False,
        ),
        # ARN operators: wildcards stay inside each of the six parts.
        (
            {"ArnLike": {"aws:SourceArn": "arn:aws:sagemaker:*:*:job/*"}},
            {"aws:SourceArn": "arn:aws:sagemaker:r:1:job/x/y"},
            True,
        ),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:*:job/*"}}, {"aws:SourceArn": "arn:aws:sagemaker:r:1:job/x"}, False),
        ({"ArnNotLike": {"aws:PrincipalArn": ["arn:aws:iam::*:role/me"]}}, {}, False),
        ({"ArnEquals": {"aws:PrincipalArn": "arn:aws:iam::123456789012:role/m*"}}, {}, True),
        # Set operators: ForAllValues holds for an absent key, ForAnyValue doesn't.
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}}, {}, True),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}}, {"aws:TagKeys": ["a"]}, True),
        ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}}, {"aws:TagKeys": ["a", "c"]}, False),
        ({"ForAllValues:StringNotEquals": {"aws:TagKeys": ["a"]}}, {"aws:TagKeys": ["b", "c"]}, True),
        ({"ForAllValues:StringNotEquals": {"aws:TagKeys": ["a"]}}, {"aws:TagKeys": ["b", "a"]}, False),
        ({"ForAnyValue:StringEquals": {"aws:TagKeys": ["a"]}}, {}, False),
        ({"ForAnyValue:StringEquals": {"aws:TagKeys": ["a"]}}, {"aws:TagKeys": ["b", "a"]}, True),
        ({"ForAnyValue:StringNotEquals": {"aws:TagKeys": ["a"]}}, {"aws:TagKeys": ["b", "a"]}, True),
        ({"ForAnyValue:StringNotEquals": {"aws:TagKeys": ["a"]}}, {}, False),
        # Several keys and operators must all hold; key names are case-insensitive.
        ({"StringEquals": {TAG: "a", "aws:RequestedRegion": "r"}}, {TAG: "a"}, False),
        ({"StringEquals": {TAG: "a"}, "Null": {"aws:RequestedRegion": "true"}}, {TAG: "a"}, True),
        ({"StringEquals": {"AWS:resourcetag/Team": "a"}}, {TAG: "a"}, True),
        # Policy variables: one without a value matches nothing, unless it has a default.
        ({"StringEquals": {TAG: "${aws:PrincipalTag/team}"}}, {TAG: "a", "aws:PrincipalTag/team": "a"}, True),
        ({"StringEquals": {TAG: "${aws:PrincipalTag/team}"}}, {TAG: "a"}, False),
        ({"StringEquals": {TAG: "${aws:PrincipalTag/team, 'a'}"}}, {TAG: "a"}, True),
        (
            {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}},
            {"aws:ResourceAccount": "123456789012"},
            True,
        ),
        ({"StringLike": {TAG: "${*}"}}, {TAG: "*"}, True),
    ],
)
def test_conditions_hold_as_documented(condition, context, expected):
    request = Request(ME, "s3:GetObject", "arn:aws:s3:::bucket/key", context)
    assert (decide(document(Condition=condition), request) == "Allow") is expected
