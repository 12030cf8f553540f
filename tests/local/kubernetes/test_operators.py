"""What a pod's process gets from its pod: Secrets as files, and access through its Service."""

import pytest

from hpkit.catalog.instances import read_data
from hpkit_local.kubernetes.operator_table import OPERATORS
from hpkit_local.kubernetes.operators import Operators, at_mounts, write_mount
from hpkit_local.toolchain.table import tool_named


class Cluster:
    """An API server that has these Services and pods, and no Secret."""

    def __init__(self, services=(), pods=()):
        self.services, self.pods = services, pods

    def items(self, path, *, labels="", cached=False):  # noqa: ARG002 - see Api
        if path == "/api/v1/services":
            return list(self.services)
        key, _, value = labels.partition("=")
        return [pod for pod in self.pods if pod["metadata"]["labels"].get(key) == value]

    def find(self, _):
        return None


def service(name, address, selector, **ports):
    spec = {"clusterIP": address, "selector": selector, "ports": [ports]}
    return {"metadata": {"name": name, "namespace": "keda"}, "spec": spec}


def pod(app, image, *, optional):
    container = {"image": image, "volumeMounts": [{"name": "certificates", "mountPath": "/certs"}]}
    volume = {"name": "certificates", "secret": {"secretName": "certs", "optional": optional}}
    return {
        "metadata": {"uid": app, "name": app, "namespace": "keda", "labels": {"app": app}},
        "status": {"phase": "Running"},
        "spec": {"containers": [container], "volumes": [volume]},
    }


def operators(tmp_path, **cluster):
    kubeconfig = tmp_path / "kubeconfig"
    return Operators(Cluster(**cluster), kubeconfig=kubeconfig, executables={}, logs=tmp_path, kubelet=10250)


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [
        ("10.0.0.9", 443, "Service 10.0.0.9 doesn't exist"),
        ("other.keda.svc", 443, "Service other.keda.svc doesn't exist"),
        ("metrics.elsewhere.svc", 443, "Service metrics.elsewhere.svc doesn't exist"),
        ("10.0.0.7", 80, "Service keda/metrics has no port 80"),
        ("metrics.keda.svc", 443, "no process on this machine serves port 443 of Service keda/metrics"),
        ("metrics.keda.svc.cluster.local", 443, "no process on this machine serves port 443"),
    ],
)
def test_where_nothing_serves_the_reason_is_said(tmp_path, host, port, reason):
    there = service("metrics", "10.0.0.7", {"app": "x"}, port=443, targetPort=6443)
    with pytest.raises(LookupError, match=reason):
        operators(tmp_path, services=[there]).locate(host, port)


def test_a_pod_whose_secret_is_not_there_yet_is_waited_for_and_one_that_does_without_is_not(tmp_path):
    needs = pod("keda-operator-metrics-apiserver", "kedacore/keda-metrics-apiserver:1", optional=False)
    does_without = pod("keda-operator", "kedacore/keda:1", optional=True)
    waiting = operators(tmp_path, pods=[needs])
    assert not waiting.poll(), "it will be looked at again"
    pods = [does_without]
    other = operators(tmp_path, pods=pods)
    other.poll()
    mounted = tmp_path / "operators" / "keda-operator" / "certificates"
    assert (mounted / "..data").is_dir()
    pods.clear()
    other.poll()
    assert not mounted.exists(), "a pod that goes leaves no Secret behind"


def test_all_files_of_a_secret_change_at_once_and_stay_where_they_are(tmp_path):
    folder = tmp_path / "certs"
    write_mount(folder, {"tls.crt": b"one", "gone": b"x"})
    first = (folder / "..data").resolve()
    write_mount(folder, {"tls.crt": b"one", "gone": b"x"})
    assert (folder / "..data").resolve() == first, "nothing has changed"
    write_mount(folder, {"tls.crt": b"two", "ca.crt": b"three"})
    seen = {each.name: each.read_bytes() for each in folder.iterdir() if not each.name.startswith("..")}
    assert seen == {"tls.crt": b"two", "ca.crt": b"three"}
    assert not first.exists()
    assert (folder / "tls.crt").resolve().stat().st_mode & 0o077 == 0, "nobody else reads it"


def test_arguments_name_files_where_they_are_mounted_and_nothing_that_only_begins_alike(tmp_path):
    mounts = {"/certs": tmp_path}
    assert at_mounts("--cert-dir=/certs", mounts) == f"--cert-dir={tmp_path}"
    assert at_mounts("--tls=/certs/tls.crt", mounts) == f"--tls={tmp_path}/tls.crt"
    assert at_mounts("--other=/certs-of-others/a", mounts) == "--other=/certs-of-others/a"


def test_each_port_that_an_argument_names_is_one_that_an_operator_serves():
    served = {f"{each.name}/{port}": 1 for each in OPERATORS for port in each.serves}
    for operator in OPERATORS:
        for argument in operator.arguments:
            argument.format(namespace="n", kubeconfig="k", ports=served)


def test_the_mpi_operator_has_the_version_of_the_charts_image():
    (row,) = [each for each in read_data("dependencies.json")["chart"]["images"] if each["subchart"] == "mpi-operator"]
    assert tool_named("mpi-operator").version.startswith(f"{row['image'].partition(':')[2]}.")
