"""Names of AWS resources stay within their limits, and are unique."""

from hypothesis import given
from hypothesis import strategies as st

from hpkit.plan.derive import derive
from hpkit.plan.names import bounded, bucket_name, role_name
from tests.builders import organization, typed

NAMES = st.from_regex(r"\A[a-z0-9](?:[-a-z0-9]{0,78}[a-z0-9])?\Z")


@given(NAMES, st.integers(12, 64))
def test_a_name_is_never_longer_than_its_limit(name, limit):
    assert len(bounded(name, limit)) <= limit
    assert bounded(name, limit) == name or len(name) > limit


@given(NAMES, NAMES, st.integers(20, 40))
def test_two_names_stay_two(one, other, limit):
    assert (bounded(one, limit) == bounded(other, limit)) == (one == other)


def test_names_of_the_longest_organization_fit():
    data = organization(top={"organization": "a" * 40})
    plan = derive(typed(data), "dev")
    assert len(role_name(plan, "amazon-sagemaker-hyperpod-training-operator")) <= 64
    bucket = bucket_name(plan, "123456789012")
    assert len(bucket) <= 63
    assert bucket.startswith("sagemaker-a")
    assert bucket.endswith("-123456789012-us-west-2")
