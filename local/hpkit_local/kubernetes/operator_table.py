"""Operators that charts bring and that run as processes here, as data: one entry per program."""

from dataclasses import dataclass

__all__ = ["OPERATORS", "Operator"]


@dataclass(frozen=True)
class Operator:
    """A program that runs in pods with these labels and an image of this name; `arguments` are added to the pod's.

    In arguments, `{namespace}` is the pod's, `{kubeconfig}` the file with its account's token, and `{ports[NAME/PORT]}`
    where on loopback the port of an operator's container is. serves: its container's ports that others reach. variable:
    the environment variable in which it wants its namespace, which a pod finds in a file.
    """

    name: str
    image: str
    labels: str
    arguments: tuple[str, ...] = ()
    serves: tuple[int, ...] = ()
    variable: str = ""


# Neither metrics nor health: several instances would want the same ports.
_NO_PORTS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")

OPERATORS = (
    Operator(
        name="training-operator",
        image="kubeflow/training-operator",
        labels="control-plane=kubeflow-training-operator",
        arguments=_NO_PORTS,
    ),
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
            # As whom the operator's certificate knows it.
            "--metrics-service-grpc-authority=keda-operator.{namespace}.svc",
        ),
        serves=(6443,),
    ),
)
