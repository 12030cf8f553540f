"""Durations in every notation, and whether the SDKs point to the local cloud."""

import pytest

from hpkit.project import is_local
from hpkit.text.formatting import seconds_in


@pytest.mark.parametrize(
    ("is_inside", "urls"),
    [
        (True, ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"]),
        (False, ["", "https://ec2.us-west-2.amazonaws.com", "https://127.0.0.1.example.com", "http://127.example"]),
        (False, ["http://10.0.0.1:4566", "http://[::2]:1", "http://[::1", "http://bucket.localhost:4566"]),
    ],
)
def test_only_an_endpoint_on_this_machine_is_the_local_cloud(is_inside, urls):
    assert [is_local({"AWS_ENDPOINT_URL": url}) for url in urls] == [is_inside] * len(urls)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("3d", 259200), ("2w", 1209600), ("1.5h", 5400), ("0", 0), ("250ms", 0.25)],
)
def test_a_duration_is_a_number_of_seconds(text, seconds):
    assert seconds_in(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "90", "-1h", "1 h", "1y", "h", "1h30"])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="isn't a duration"):
        seconds_in(text)
