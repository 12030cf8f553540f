"""Whether the SDKs point to the local cloud, which determines how a missing chart is handled."""

import pytest

from hpkit.project import is_local


@pytest.mark.parametrize("url", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"])
def test_an_endpoint_on_this_machine_is_the_local_cloud(url):
    assert is_local({"AWS_ENDPOINT_URL": url})


@pytest.mark.parametrize(
    "url", ["", "https://sagemaker.us-west-2.amazonaws.com", "http://127.example", "http://10.0.0.1"]
)
def test_any_other_endpoint_is_aws(url):
    assert not is_local({"AWS_ENDPOINT_URL": url})
    assert not is_local({})
