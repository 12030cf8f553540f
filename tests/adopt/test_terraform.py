import json

import pytest

from hpkit.adopt import read_terraform
from hpkit.errors import InputError

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
CLUSTER = "module.hyperpod_cluster[0].awscc_sagemaker_cluster.hyperpod_cluster"


def stored(*resources, version=4):
    return json.dumps({"version": version, "terraform_version": "1.14.0", "serial": 3, "resources": list(resources)})


def resource(kind, name, *instances, module="", mode="managed"):
    row = {"mode": mode, "type": kind, "name": name, "provider": 'provider["x"]', "instances": list(instances)}
    return row | ({"module": module} if module else {})


def platform():
    return stored(
        resource("aws_region", "current", {"attributes": {"id": "us-west-2"}}, mode="data"),
        resource(
            "awscc_sagemaker_cluster",
            "hyperpod_cluster",
            {"schema_version": 0, "attributes": {"id": ARN, "cluster_arn": ARN, "cluster_name": "ml-cluster"}},
            module="module.hyperpod_cluster[0]",
        ),
        resource(
            "aws_eks_addon",
            "vpc_cni",
            {
                "attributes": {
                    "id": "eks:vpc-cni",
                    "cluster_name": "eks",
                    "addon_name": "vpc-cni",
                    "arn": "arn:aws:eks:a",
                }
            },
            module="module.eks_cluster[0]",
        ),
        resource(
            "aws_subnet",
            "private",
            {"index_key": 0, "attributes": {"id": "subnet-0"}},
            {"index_key": 1, "attributes": {"id": "subnet-1"}},
            {"index_key": 1, "deposed": "deadbeef", "attributes": {"id": "subnet-old"}},
            module="module.private_subnet[0]",
        ),
        resource(
            "null_resource",
            "compute_quota",
            {
                "index_key": "vision quota",
                "attributes": {
                    "id": "81",
                    "triggers": {
                        "name": "vision quota",
                        "cluster_arn": ARN,
                        "compute_quota_target": '{"TeamName":"vision","FairShareWeight":10}',
                    },
                },
            },
            module="module.task_governance[0]",
        ),
        resource(
            "helm_release", "hyperpod", {"attributes": {"id": "deps", "name": "deps", "namespace": "kube-system"}}
        ),
    )


def by_address(text):
    return {each.address: each for each in read_terraform(text)}


def test_addresses_carry_modules_counts_and_keys():
    assert sorted(by_address(platform())) == [
        "helm_release.hyperpod",
        "module.eks_cluster[0].aws_eks_addon.vpc_cni",
        CLUSTER,
        "module.private_subnet[0].aws_subnet.private[0]",
        "module.private_subnet[0].aws_subnet.private[1]",
        'module.task_governance[0].null_resource.compute_quota["vision quota"]',
    ]


def test_ids_are_those_that_import_takes():
    owned = by_address(platform())
    assert owned[CLUSTER].ids == {ARN, "ml-cluster"}
    assert "eks:vpc-cni" in owned["module.eks_cluster[0].aws_eks_addon.vpc_cni"].ids
    assert "kube-system/deps" in owned["helm_release.hyperpod"].ids


def test_a_quota_made_by_a_command_is_known_by_its_team_and_not_by_its_cluster():
    quota = by_address(platform())['module.task_governance[0].null_resource.compute_quota["vision quota"]']
    assert quota.ids == {"81", "vision quota", "vision"}


@pytest.mark.parametrize("target", ["not JSON", "[]", None, 3])
def test_a_quota_whose_target_cannot_be_read_keeps_its_name(target):
    triggers = {"name": "q", "compute_quota_target": target}
    text = stored(resource("null_resource", "q", {"attributes": {"id": "1", "triggers": triggers}}))
    assert by_address(text)["null_resource.q"].ids == {"1", "q"}


def test_a_deposed_instance_is_nobodys():
    ids = {name for each in read_terraform(platform()) for name in each.ids}
    assert "subnet-old" not in ids


def test_a_key_is_quoted_as_hcl_quotes_it():
    text = stored(resource("aws_vpc", "v", {"index_key": 'a"b\\${x}', "attributes": {"id": "vpc-1"}}))
    assert list(by_address(text)) == ['aws_vpc.v["a\\"b\\\\$${x}"]']


@pytest.mark.parametrize(
    ("kind", "attributes", "wanted"),
    [
        (
            "aws_eks_access_policy_association",
            {"cluster_name": "eks", "principal_arn": "arn:p", "policy_arn": "arn:q"},
            "eks#arn:p#arn:q",
        ),
        ("aws_iam_role_policy_attachment", {"id": "r-2024", "role": "r", "policy_arn": "arn:q"}, "r/arn:q"),
        ("aws_eks_pod_identity_association", {"cluster_name": "eks", "association_id": "a-1"}, "eks,a-1"),
        ("aws_route", {"route_table_id": "rtb-1", "destination_cidr_block": "0.0.0.0/0"}, "rtb-1_0.0.0.0/0"),
        ("aws_s3_object", {"bucket": "lcs", "key": "on_create.sh"}, "lcs/on_create.sh"),
        ("kubernetes_manifest", {"manifest": {"kind": "NodePool", "metadata": {"name": "gpu"}}}, "NodePool/gpu"),
        ("kubectl_manifest", {"kind": "NodePool", "name": "gpu"}, "NodePool/gpu"),
        ("kubernetes_namespace_v1", {"id": "x", "metadata": [{"name": "team"}]}, "team"),
    ],
)
def test_composed_ids(kind, attributes, wanted):
    [owned] = read_terraform(stored(resource(kind, "x", {"attributes": attributes})))
    assert wanted in owned.ids


def test_the_bucket_of_an_object_is_not_the_object():
    [owned] = read_terraform(stored(resource("aws_s3_object", "x", {"attributes": {"bucket": "lcs", "key": "k"}})))
    assert "lcs" not in owned.ids


def test_what_terraform_shows_says_the_same_as_what_it_stores():
    shown = {
        "format_version": "1.0",
        "terraform_version": "1.14.0",
        "values": {
            "root_module": {
                "resources": [
                    {"address": "data.aws_region.current", "mode": "data", "type": "aws_region", "values": {}},
                ],
                "child_modules": [
                    {
                        "address": "module.hyperpod_cluster[0]",
                        "resources": [
                            {
                                "address": CLUSTER,
                                "mode": "managed",
                                "type": "awscc_sagemaker_cluster",
                                "values": {"id": ARN, "cluster_arn": ARN, "cluster_name": "ml-cluster"},
                            },
                            {
                                "address": CLUSTER,
                                "mode": "managed",
                                "type": "awscc_sagemaker_cluster",
                                "deposed_key": "deadbeef",
                                "values": {"id": "old"},
                            },
                        ],
                    }
                ],
            }
        },
    }
    [cluster] = read_terraform(json.dumps(shown))
    assert cluster == by_address(platform())[CLUSTER]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("Terraform", "not JSON"),
        ("[]", "not a Terraform state"),
        ('{"encrypted_data": "x", "encryption_version": "v0"}', "tofu state pull"),
        ('{"format_version": "1.2", "planned_values": {}}', "a plan"),
        ('{"format_version": "1.0"}', "no managed resource"),
        (stored(), "no managed resource"),
        (stored(version=3), "state version 3"),
        ("{}", "state version None"),
        (stored("text"), "not a valid Terraform state"),
        (stored({"mode": "managed"}), "not a valid Terraform state"),
        (stored(resource("aws_vpc", "v", {"attributes": 3})), "not a valid Terraform state"),
        ('{"format_version": "1.0", "values": {}}', "no managed resource"),
        ('{"format_version": "1.0", "values": {"x": 1}}', "not a valid Terraform state"),
    ],
)
def test_what_is_no_state_is_refused_with_what_to_do(text, says):
    with pytest.raises(InputError, match=says) as caught:
        read_terraform(text, file="here.tfstate")
    assert "here.tfstate" in str(caught.value)
