"""The hands-on article's unchanged manifest on a platform of hpkit: which parts are admitted, and which aren't."""

from pathlib import Path

import pytest
import yaml

from tests.security.members import member, refused

pytestmark = pytest.mark.platform

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
CORE = "/api/v1/namespaces/hyperpod-ns-smith"
DEPLOYMENTS = "/apis/apps/v1/namespaces/hyperpod-ns-smith/deployments"


def test_a_member_who_applies_it_as_printed_gets_the_service_alone(instance, api):
    text = Path(__file__).with_name("as_published.yaml").read_text(encoding="utf-8")
    service, deployment, job = yaml.safe_load_all(text)
    smith = member(instance, "smith")
    smith.create(f"{CORE}/services", service)
    try:
        message = refused(smith.create, DEPLOYMENTS, deployment)
        assert "kueue.x-k8s.io/queue-name" in message
        # The training operator's own objects for the job are admitted; its pods aren't.
        template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
        metadata = {"name": "fsdp-worker-0", "labels": template["metadata"]["labels"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        message = refused(api.create, f"{CORE}/pods", pod)
        assert 'violates PodSecurity "baseline:' in message
        assert 'volumes "shmem", "local"' in message
        # The sample has emptyDirs with a limit there.
        *_, sample = yaml.safe_load_all((EXAMPLES / "fsdp-smith.yaml").read_text(encoding="utf-8"))
        volumes = sample["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"]
        assert {"name": "local", "emptyDir": {"sizeLimit": "20Gi"}} in volumes
        api.create(f"{CORE}/pods?dryRun=All", {**pod, "spec": {**pod["spec"], "volumes": volumes}})
    finally:
        smith.delete(f"{CORE}/services/etcd")
