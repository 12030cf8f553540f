"""Durations in every notation, and whether the SDKs point to the local cloud."""

import pytest

from hpkit.project import is_local
from hpkit.text.formatting import seconds_in


@pytest.mark.parametrize("url", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"])
def test_an_endpoint_on_this_machine_is_the_local_cloud(url):
    assert is_local({"AWS_ENDPOINT_URL": url})


@pytest.mark.parametrize(
    "url", ["", "https://sagemaker.us-west-2.amazonaws.com", "http://127.example", "http://10.0.0.1"]
)
def test_any_other_endpoint_is_aws(url):
    assert not is_local({"AWS_ENDPOINT_URL": url})
    assert not is_local({})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("3d", 259200), ("2w", 1209600), ("1.5h", 5400), ("5m0s", 300), ("0", 0)],
)
def test_a_duration_is_a_number_of_seconds(text, seconds):
    assert seconds_in(text) == seconds


def test_milliseconds_are_not_minutes():
    assert seconds_in("250ms") == pytest.approx(0.25)


@pytest.mark.parametrize("text", ["", "90", "-1h", "1 h", "1y", "h", "1h30"])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="isn't a duration"):
        seconds_in(text)
