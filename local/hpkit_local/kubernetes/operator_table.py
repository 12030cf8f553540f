"""Operators from charts that run as processes here, as data: one entry per program."""

from dataclasses import dataclass

__all__ = ["OPERATORS", "Operator"]


@dataclass(frozen=True)
class Operator:
    """A program that runs in pods with these labels and an image with this name; `arguments` are added to the pod's.

    In arguments, `{namespace}` is the pod's, `{kubeconfig}` the file with its account's token, and `{ports[NAME/PORT]}`
    the loopback port of an operator's container port. serves: its container ports that others reach. variable: the
    environment variable for its namespace, which a pod finds in a file.
    """

    name: str
    image: str
    labels: str
    arguments: tuple[str, ...] = ()
    serves: tuple[int, ...] = ()
    variable: str = ""


# No metrics or health ports, because several instances would use the same ones.
_NO_PORTS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")

OPERATORS = (
    Operator(
        name="training-operator",
        image="kubeflow/training-operator",
        labels="control-plane=kubeflow-training-operator",
        arguments=_NO_PORTS,
    ),
    Operator(name="mpi-operator", image="mpioperator/mpi-operator", labels="app=mpi-operator"),
    Operator(
        name="keda-operator",
        image="kedacore/keda",
        labels="app=keda-operator",
        arguments=(*_NO_PORTS, "--metrics-service-bind-address=127.0.0.1:{ports[keda-operator/9666]}"),
        serves=(9666,),
        variable="KEDA_CLUSTER_OBJECT_NAMESPACE",
    ),
    Operator(
        name="keda-metrics-apiserver",
        image="kedacore/keda-metrics-apiserver",
        labels="app=keda-operator-metrics-apiserver",
        arguments=(
            *("--bind-address=127.0.0.1", "--secure-port={ports[keda-metrics-apiserver/6443]}", "--port=0"),
            *("--authentication-kubeconfig={kubeconfig}", "--authorization-kubeconfig={kubeconfig}"),
            "--lister-kubeconfig={kubeconfig}",
            "--metrics-service-address=127.0.0.1:{ports[keda-operator/9666]}",
            # The name in the operator's certificate.
            "--metrics-service-grpc-authority=keda-operator.{namespace}.svc",
        ),
        serves=(6443,),
    ),
)
