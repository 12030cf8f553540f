"""The worker's cloud for files that need a running instance, and the tools, bootstrapped once."""

import pytest

from hpkit_local.kubernetes.api import Api


@pytest.fixture(scope="module")
def running(clouds):
    return clouds.empty()


@pytest.fixture(scope="module")
def api(running):
    return Api.of_kubeconfig(running.kubeconfig)
