"""The inference operator's roles through the cluster's OIDC provider, its values, and the add-ons that it requires."""

import json

import pytest

from tests.builders import findings, group, organization
from tests.program.recorder import recorded_from

OPERATOR = "amazon-sagemaker-hyperpod-inference"
NEEDED = ("aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver", "cert-manager", "metrics-server")
MANAGED = "AmazonSageMakerHyperPodInferenceAccess"
BOUNDARY = "arn:aws:iam::123456789012:policy/bounds"
CERT_MANAGER = {"dependencies": {"values": {"cert-manager": {"enabled": True}}}}
SAID = {"tlsCertificateBucket": "acme-tls", "modelBuckets": ["acme-models"]}


def wanted(*, groups=None, **environment):
    data = organization(groups=groups, environment={"inference": SAID, "permissionsBoundary": BOUNDARY})
    cluster = environment.pop("cluster", {})
    data["environments"]["dev"].update(environment)
    data["environments"]["dev"]["cluster"].update(cluster)
    return data


@pytest.fixture(scope="module")
def program():
    return recorded_from(wanted())


def values_of(program):
    return json.loads(program.one("eks/addon:Addon", OPERATOR).inputs["configurationValues"])


def trusts(program, role):
    return json.loads(program.one("iam/role:Role", role).inputs["assumeRolePolicy"])["Statement"]


def policy_of(program, role):
    return json.loads(program.one("iam/rolePolicy:RolePolicy", role).inputs["policy"])["Statement"]


def test_the_operator_is_installed_after_all_that_it_needs(program):
    operator = program.one("eks/addon:Addon", OPERATOR)
    for name in NEEDED:
        assert program.waits(operator, program.one("eks/addon:Addon", name))
    assert program.waits(operator, program.one("hyperpod:index:Cluster"))


def test_the_operator_is_installed_when_its_roles_have_their_rights(program):
    operator = program.one("eks/addon:Addon", OPERATOR)
    rights = ["inference", "inference-load-balancers", "inference-keda"]
    assert all(program.waits(operator, program.one("iam/rolePolicy:RolePolicy", name)) for name in rights)
    attached = program.one("iam/rolePolicyAttachment:RolePolicyAttachment", f"inference-{MANAGED}")
    assert attached.inputs["policyArn"] == f"arn:aws:iam::aws:policy/{MANAGED}"
    assert program.waits(operator, attached)


def test_the_operator_is_told_roles_bucket_and_cluster(program):
    role = {name: each.made["arn"] for name, each in program.named("iam/role:Role").items()}
    assert values_of(program) == {
        "executionRoleArn": role["inference"],
        "tlsCertificateS3Bucket": "acme-tls",
        "hyperpodClusterArn": program.one("hyperpod:index:Cluster").made["clusterArn"],
        "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": role["inference-load-balancers"]}},
        "keda": {"enabled": True, "auth": {"aws": {"irsa": {"enabled": True, "roleArn": role["inference-keda"]}}}},
    }


@pytest.mark.parametrize(
    ("role", "account"),
    [
        ("inference", "hyperpod-inference-controller-manager"),
        ("inference-load-balancers", "aws-load-balancer-controller"),
        ("inference-keda", "keda-operator"),
    ],
)
def test_each_role_is_for_pods_of_one_service_account(program, role, account):
    provider = program.one("iam/openIdConnectProvider:OpenIdConnectProvider")
    issuer = provider.inputs["url"].removeprefix("https://")
    (pods,) = [each for each in trusts(program, role) if "Federated" in each["Principal"]]
    assert pods["Principal"] == {"Federated": provider.made["arn"]}
    assert pods["Condition"] == {
        "StringEquals": {
            f"{issuer}:aud": "sts.amazonaws.com",
            f"{issuer}:sub": f"system:serviceaccount:hyperpod-inference-system:{account}",
        }
    }


def test_sagemaker_takes_the_operators_role_alone(program):
    services = {
        role: [
            trust["Principal"]["Service"]
            for trust in trusts(program, role)
            if trust["Effect"] == "Allow" and "Service" in trust["Principal"]
        ]
        for role in ("inference", "inference-load-balancers", "inference-keda")
    }
    assert services == {"inference": ["sagemaker.amazonaws.com"], "inference-load-balancers": [], "inference-keda": []}


def test_the_operators_role_is_named_as_the_add_on_asks(program):
    name = program.one("iam/role:Role", "inference").inputs["name"]
    assert name == "SageMakerHyperPodInference-acme-dev-us-west-2"


def test_buckets_are_those_that_the_file_names(program):
    assert [each["Resource"] for each in policy_of(program, "inference") if each["Effect"] == "Allow"] == [
        ["arn:aws:s3:::acme-tls/*"],
        ["arn:aws:s3:::acme-tls"],
    ]
    assert [(each["Action"], each["Resource"]) for each in policy_of(program, "aws-mountpoint-s3-csi-driver")] == [
        (["s3:GetObject"], ["arn:aws:s3:::acme-models/*"]),
        (["s3:ListBucket"], ["arn:aws:s3:::acme-models"]),
    ]
    association = program.one("eks/podIdentityAssociation:PodIdentityAssociation", "aws-mountpoint-s3-csi-driver")
    assert (association.inputs["namespace"], association.inputs["serviceAccount"]) == (
        "kube-system",
        "s3-csi-driver-sa",
    )


def certificates():
    return recorded_from(wanted(inference={"modelBuckets": ["acme-models"]}))


CERTIFICATES = "hyperpod-tls-acme-dev-123456789012-us-west-2"


def test_a_bucket_that_is_named_is_not_made(program):
    assert "certificates" not in program.named("s3/bucket:Bucket")


def test_without_a_name_the_operator_gets_a_bucket_of_its_own():
    program = certificates()
    bucket = program.one("s3/bucket:Bucket", "certificates")
    assert bucket.inputs["bucket"] == CERTIFICATES
    assert values_of(program)["tlsCertificateS3Bucket"] == CERTIFICATES
    assert policy_of(program, "inference")[0]["Resource"] == [f"arn:aws:s3:::{CERTIFICATES}/*"]
    kinds = (
        *("BucketPublicAccessBlock", "BucketOwnershipControls", "BucketServerSideEncryptionConfiguration"),
        *("BucketVersioning", "BucketPolicy"),
    )
    operator = program.one("eks/addon:Addon", OPERATOR)
    for kind in kinds:
        companion = program.one(f"s3/{kind[0].lower()}{kind[1:]}:{kind}", "certificates")
        assert bucket.urn in companion.uses["bucket"]
        assert program.waits(operator, companion), "nothing is written before the bucket is closed"


def test_only_the_operators_role_writes_to_it_and_only_deployers_set_it():
    program = certificates()
    role = program.one("iam/role:Role", "inference").made["arn"]
    statements = json.loads(program.one("s3/bucketPolicy:BucketPolicy", "certificates").inputs["policy"])["Statement"]
    by_id = {each["Sid"]: each for each in statements}
    assert by_id["TlsOnly"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert by_id["OnlyOperatorWrite"]["Condition"] == {"ArnNotLike": {"aws:PrincipalArn": [role]}}
    assert "s3:PutObject*" in by_id["OnlyOperatorWrite"]["Action"]
    scripts = json.loads(program.one("s3/bucketPolicy:BucketPolicy", "lifecycle").inputs["policy"])["Statement"]
    deployers = next(each["Condition"] for each in scripts if each["Sid"] == "OnlyDeployersConfigure")
    assert by_id["OnlyDeployersConfigure"]["Condition"] == deployers


def test_its_certificates_are_kept_like_scripts():
    bucket = certificates().one("s3/bucket:Bucket", "certificates")
    assert bucket.protect
    assert bucket.inputs["forceDestroy"]
    kept = recorded_from(wanted(inference={}, protect=True)).one("s3/bucket:Bucket", "certificates")
    assert not kept.inputs.get("forceDestroy")
    lifted = recorded_from(wanted(inference={}, allowReplace=["bucket"])).one("s3/bucket:Bucket", "certificates")
    assert not lifted.protect


def test_without_model_buckets_the_driver_has_no_role():
    program = recorded_from(wanted(inference={"tlsCertificateBucket": "acme-tls"}))
    assert "aws-mountpoint-s3-csi-driver" not in program.named("iam/role:Role")


def test_what_the_chart_or_the_cluster_has_is_not_installed_again():
    there = recorded_from(wanted(inference={**SAID, "installed": ["metrics-server"]}, cluster=CERT_MANAGER))
    addons = there.named("eks/addon:Addon")
    assert {name for name in NEEDED if name in addons} == {"aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver"}
    found = findings(wanted(inference={**SAID, "installed": ["metrics-server"]}, cluster=CERT_MANAGER))
    assert [each.rule for each in found] == ["ADD002"], "nobody has it there before the first up"


def test_a_provider_that_is_there_is_used():
    given = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/ABC"
    program = recorded_from(wanted(inference={**SAID, "oidcProviderArn": given}))
    assert program.all("iam/openIdConnectProvider:OpenIdConnectProvider") == []
    assert trusts(program, "inference")[0]["Principal"] == {"Federated": given}


def test_the_kits_keda_is_the_only_one():
    fleet = [group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0)]
    autoscaling = {
        "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
        "nodePools": [{"name": "burst", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
        "keda": {},
    }
    program = recorded_from(wanted(groups=fleet, autoscaling=autoscaling))
    assert values_of(program)["keda"] == {"enabled": False}
    assert "inference-keda" not in program.named("iam/role:Role")
