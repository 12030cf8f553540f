"""Which resources wait for changes that AWS makes effective late, and which don't."""

import json

import pytest

from hpkit.catalog import TASK_GOVERNANCE, addons
from hpkit.plan.derive import derive
from hpkit.plan.endpoint import awaited_groups
from tests.builders import group, organization, team, typed
from tests.program.recorder import recorded, recorded_from

READINESS = "hyperpod:index:Readiness"
CHECKS = ["InstanceStress"]
TAINT = [{"key": "team", "value": "nlp", "effect": "NoSchedule"}]


@pytest.fixture(scope="module")
def enterprise():
    return recorded("enterprise-prod")


def awaited(*groups):
    plan = derive(typed(organization(groups=list(groups))), "dev")
    return [each.name for each in awaited_groups(plan)]


def test_nothing_inside_the_cluster_is_made_before_the_deployer_is_admitted(enterprise):
    access = enterprise.one(READINESS, "access")
    inside = [each for each in enterprise.resources.values() if each.type.startswith("kubernetes:")]
    assert len(inside) > 10
    assert [each.name for each in inside if not enterprise.waits(each, access)] == []
    entries = enterprise.all("eks/accessPolicyAssociation:AccessPolicyAssociation")
    administrators = [each for each in entries if "ClusterAdmin" in each.inputs["policyArn"]]
    assert all(enterprise.waits(access, each) for each in administrators)


def test_eks_waits_until_its_role_can_use_the_key(enterprise):
    eks, key = enterprise.one("eks/cluster:Cluster"), enterprise.one(READINESS, "key")
    assert enterprise.waits(eks, key)
    rights = [
        enterprise.one("iam/rolePolicy:RolePolicy", "control-plane"),
        enterprise.one("iam/rolePolicyAttachment:RolePolicyAttachment", "control-plane"),
    ]
    assert all(enterprise.waits(key, each) for each in rights)
    slow = [*enterprise.all("ec2/natGateway:NatGateway"), *enterprise.all("ec2/vpcEndpoint:VpcEndpoint")]
    assert [each.name for each in slow if enterprise.waits(key, each)] == []


def test_other_services_use_the_key_when_it_can_be_used_everywhere():
    given = {"teams": [team("nlp", registry=["train"])], "groups": [group("gpu", "ml.g5.12xlarge", 1)]}
    allocations = {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    program = recorded_from(organization(**given, allocations=allocations))
    key = program.one(READINESS, "key")
    assert program.waits(program.one("cloudwatch/logGroup:LogGroup"), key)
    assert program.waits(program.one("ecr/repository:Repository"), key)


@pytest.mark.parametrize("stack", ["enterprise-prod", "autoscale-dev"])
def test_pods_with_a_role_wait_until_their_association_is_in_force(stack):
    program = recorded(stack)
    addons = {association.name: association for association in program.all("eks/addon:Addon")}
    associations = program.all("eks/podIdentityAssociation:PodIdentityAssociation")
    waits = {
        association.name: association
        for association in program.all(READINESS)
        if "podIdentityAssociations" in association.inputs
    }
    known = {account for wait in waits.values() for account in wait.inputs["podIdentityAssociations"]}
    assert known == {
        f"{association.inputs['namespace']}/{association.inputs['serviceAccount']}" for association in associations
    }
    for association in associations:
        user = program.one("helm.sh/v3:Release", "keda") if association.name == "keda" else addons[association.name]
        between = [wait for wait in waits.values() if program.waits(user, wait) and program.waits(wait, association)]
        assert between, association.name
    assert not any(program.waits(addons["vpc-cni"], wait) for wait in waits.values())


@pytest.mark.parametrize(
    ("stack", "named"),
    [
        ("autoscale-dev", {"coredns", TASK_GOVERNANCE}),
        ("enterprise-prod", {"amazon-sagemaker-hyperpod-observability", TASK_GOVERNANCE}),
    ],
)
def test_add_ons_that_need_nodes_wait_for_ready_ones(stack, named):
    program = recorded(stack)
    nodes = program.one(READINESS, "nodes")
    assert program.waits(nodes, program.one("hyperpod:index:Cluster"))
    needing = {each.name for each in addons() if each.needs_nodes}
    made = {each.name: each for each in program.all("eks/addon:Addon") if each.name in needing}
    assert named <= made.keys()
    assert [name for name, each in made.items() if not program.waits(each, nodes)] == []


def test_keda_waits_for_ready_nodes_and_karpenters_objects_do_not():
    program = recorded("autoscale-dev")
    nodes = program.one(READINESS, "nodes")
    assert program.waits(program.one("helm.sh/v3:Release", "keda"), nodes)
    classes = program.all("karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass")
    assert classes
    assert not any(program.waits(each, nodes) for each in classes)


def test_policy_and_quotas_wait_until_kueue_runs(enterprise):
    kueue = enterprise.one(READINESS, "kueue")
    assert kueue.inputs["deployments"] == ["kueue-system/kueue-controller-manager"]
    governed = [
        *enterprise.all("hyperpod:index:ClusterSchedulerConfig"),
        *enterprise.all("hyperpod:index:ComputeQuota"),
    ]
    assert all(enterprise.waits(each, kueue) for each in governed)


def test_groups_without_accelerators_are_waited_for_if_there_are_any():
    gpu, system = group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1)
    assert awaited(gpu, system) == ["system"]
    assert awaited(gpu, group("none", "ml.m5.4xlarge", 0)) == ["gpu"]
    assert awaited(gpu, group("closed", "ml.m5.4xlarge", 1, taints=TAINT)) == ["gpu"]


def test_groups_with_deep_health_checks_are_waited_for_only_where_there_are_no_others():
    checked = group("checked", "ml.p4d.24xlarge", 2, deepHealthChecks=CHECKS)
    assert awaited(checked, group("gpu", "ml.g5.12xlarge", 4)) == ["gpu"]
    assert awaited(checked) == ["checked"]


def test_where_only_karpenter_adds_nodes_none_is_waited_for():
    burst = {**group("burst", "ml.g5.8xlarge", 0), "availabilityZone": "us-west-2b"}
    scaling = {"autoscaling": {"nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}], "nodePools": []}}
    program = recorded_from(organization(groups=[burst], environment=scaling))
    assert [each.name for each in program.all(READINESS) if "instanceGroups" in each.inputs] == []
    assert program.waits(
        next(each for each in program.all("eks/addon:Addon") if each.name == "coredns"),
        program.one("hyperpod:index:Cluster"),
    )


def test_the_time_for_nodes_is_the_files():
    data = organization()
    data["environments"]["dev"]["cluster"]["nodesReadyMinutes"] = 150
    assert recorded_from(data).one(READINESS, "nodes").inputs["minutes"] == 150


def test_queues_and_teams_do_not_wait_for_all_instances_and_nothing_does_with_0_minutes(enterprise):
    capacity = enterprise.one(READINESS, "capacity")
    assert (capacity.inputs["minutes"], capacity.inputs["instanceCounts"]) == (20, {"gpu": 10, "system": 2})
    waiting = [
        each for each in enterprise.resources.values() if each is not capacity and enterprise.waits(each, capacity)
    ]
    assert {each.type for each in waiting} <= {"hyperpod:index:ChangeGuard"}
    data = organization()
    data["environments"]["dev"]["cluster"]["capacityWaitMinutes"] = 0
    assert "capacity" not in {each.name for each in recorded_from(data).all(READINESS)}


TOPIC = "arn:aws:sns:eu-west-1:123456789012:ops"
ROLE = "arn:aws:iam::123456789012:role/live/{}"
FLEET = [group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0)]
ON = {
    "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
    "nodePools": [{"name": "burst", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
}


def observed(**observability):
    return recorded_from(organization(environment={"observability": observability}))


def definition(program):
    found = program.one("amp/alertManagerDefinition:AlertManagerDefinition").inputs["definition"]
    return json.loads(json.loads(found)["alertmanager_config"])


def statements(program, name):
    return json.loads(program.one("iam/rolePolicy:RolePolicy", name).inputs["policy"])["Statement"]


def actions(program, name):
    return {action for each in statements(program, name) for action in each["Action"]}


def test_emails_are_subscribed_to_a_topic_that_takes_alerts_of_the_workspace_alone():
    program = observed(prometheus=True, alerts={"emails": ["b@example.com", "a@example.com"]})
    topic, workspace = program.one("sns/topic:Topic"), program.one("amp/workspace:Workspace")
    (statement,) = json.loads(topic.inputs["policy"])["Statement"]
    assert statement["Resource"] == "arn:aws:sns:us-west-2:123456789012:acme-dev-alerts"
    assert statement["Condition"]["ArnEquals"] == {"aws:SourceArn": workspace.made["arn"]}
    found = [each.inputs for each in program.all("sns/topicSubscription:TopicSubscription")]
    assert {(each["protocol"], each["endpoint"]) for each in found} == {
        ("email", "a@example.com"),
        ("email", "b@example.com"),
    }
    assert program.waits(program.one("amp/alertManagerDefinition:AlertManagerDefinition"), topic)


def test_alerts_go_to_a_topic_that_is_there_in_the_region_that_it_is_in():
    program = observed(prometheus=True, alerts={"snsTopicArn": TOPIC})
    assert program.all("sns/") == []
    config = definition(program)
    (receiver,) = config["receivers"]
    assert config["route"]["receiver"] == receiver["name"]
    (sns,) = receiver["sns_configs"]
    assert (sns["topic_arn"], sns["sigv4"]) == (TOPIC, {"region": "eu-west-1"})
    assert sns["subject"].startswith("[{{ .Status }}] acme-dev ")


def rules(program):
    """Return the pattern of each EventBridge rule, by its name."""
    found = [each.inputs for each in program.all("cloudwatch/eventRule:EventRule")]
    return {each["name"]: json.loads(each["eventPattern"]) for each in found}


def test_events_of_this_cluster_alone_go_to_the_topic_of_alerts():
    program = observed(alerts={"emails": ["a@example.com"], "events": {}})
    assert rules(program) == {
        "acme-dev-cluster-status": {
            "source": ["aws.sagemaker"],
            "detail-type": ["SageMaker HyperPod Cluster State Change"],
            "detail": {"ClusterName": ["acme"], "ClusterStatus": ["Failed", "RollingBack"]},
        },
        "acme-dev-node-health": {
            "source": ["aws.sagemaker"],
            "detail-type": ["SageMaker HyperPod Cluster Node Health Event"],
            "detail": {"ClusterName": ["acme"]},
        },
        "acme-dev-cluster-event": {
            "source": ["aws.sagemaker"],
            "detail-type": ["SageMaker HyperPod Cluster Event"],
            "detail": {"EventDetails": {"ClusterName": ["acme"], "EventLevel": ["Error"]}},
        },
    }
    topic = program.one("sns/topic:Topic")
    targets = [each.inputs for each in program.all("cloudwatch/eventTarget:EventTarget")]
    assert {(each["rule"], each["arn"]) for each in targets} == {(name, topic.made["arn"]) for name in rules(program)}
    (statement,) = json.loads(topic.inputs["policy"])["Statement"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    assert "Condition" not in statement, "EventBridge supports none in a topic's policy"
    assert program.all("amp/") == []


def test_events_that_are_not_selected_have_no_rule():
    events = {"statuses": [], "nodeHealth": False, "levels": ["Warn", "Error"]}
    program = observed(
        prometheus=True, alerts={"snsTopicArn": TOPIC.replace("eu-west-1", "us-west-2"), "events": events}
    )
    (pattern,) = rules(program).values()
    assert pattern["detail"]["EventDetails"]["EventLevel"] == ["Error", "Warn"]
    assert program.all("sns/") == []


def test_grafana_reads_cloudwatch_with_and_without_prometheus():
    with_prometheus, without = observed(prometheus=True, grafana=True), observed(grafana=True)
    workspace = with_prometheus.one("amp/workspace:Workspace").made["arn"]
    for program in (with_prometheus, without):
        assert {"cloudwatch:GetMetricData", "logs:StartQuery"} <= actions(program, "grafana")
    assert [each["Resource"] for each in statements(with_prometheus, "grafana") if each["Sid"] == "Query"] == [
        [workspace]
    ]
    assert not any(action.startswith("aps:") for action in actions(without, "grafana"))


@pytest.mark.parametrize("prometheus", [True, False])
def test_cloudwatch_measures_accelerators_with_and_without_prometheus(prometheus):
    addon = observed(cloudwatch=True, prometheus=prometheus).named("eks/addon:Addon")["amazon-cloudwatch-observability"]
    values = json.loads(addon.inputs["configurationValues"])
    kubernetes = values["agent"]["config"]["logs"]["metrics_collected"]["kubernetes"]
    assert kubernetes == {"enhanced_container_insights": True, "kueue_container_insights": True}


def test_cloudwatch_is_on_unless_the_file_turns_it_off_or_the_eks_cluster_exists():
    def addons(**environment):
        return {addon.name for addon in recorded_from(organization(environment=environment)).plan.addons}

    name = "amazon-cloudwatch-observability"
    assert name in addons()
    assert name in addons(observability={"prometheus": True, "alerts": {"snsTopicArn": TOPIC}})
    assert name not in addons(observability={"cloudwatch": False})
    assert name not in addons(eks={"version": "1.35", "existing": {"name": "platform"}})


def test_users_of_grafana_have_the_roles_that_the_file_says():
    group, first, second = (f"9447d8c8-{number}001-7012-9c33-2f0a6d0a1b2c" for number in (1, 2, 3))
    program = observed(
        grafana=True,
        grafanaRoles={"ADMIN": {"groupIds": [group]}, "VIEWER": {"userIds": [second, first], "groupIds": []}},
    )
    associations = program.all("grafana/roleAssociation:RoleAssociation")
    roles = {each.inputs["role"]: each.inputs for each in associations}
    assert roles["ADMIN"]["groupIds"] == [group]
    assert roles["VIEWER"]["userIds"] == [first, second]
    assert "userIds" not in roles["ADMIN"]
    assert "groupIds" not in roles["VIEWER"]
    # An update would only add users and groups.
    assert {each.replace_on_changes for each in associations} == {("userIds", "groupIds")}
    assert all(each.delete_before_replace for each in associations)


def test_grafana_may_tell_the_topic_of_its_alert_rules_and_no_other():
    alerts = {"grafana": True, "prometheus": True}
    named = observed(**alerts, grafanaAlerts={"snsTopicArn": TOPIC})
    made = observed(**alerts, grafanaAlerts={}, alerts={"emails": ["a@example.com"]})
    for program, topic in ((named, TOPIC), (made, "arn:aws:sns:us-west-2:123456789012:acme-dev-alerts")):
        (statement,) = [each for each in statements(program, "grafana") if each["Sid"] == "Notify"]
        assert (statement["Action"], statement["Resource"]) == (["sns:Publish"], [topic])
        workspace = program.one("grafana/workspace:Workspace").inputs
        assert workspace["notificationDestinations"] == ["SNS"]
        assert json.loads(workspace["configuration"]) == {
            "plugins": {"pluginAdminEnabled": False},
            "unifiedAlerting": {"enabled": True},
        }
    without = observed(**alerts)
    assert "sns:Publish" not in actions(without, "grafana")
    assert "configuration" not in without.one("grafana/workspace:Workspace").inputs


def test_the_ebs_driver_may_attach_volumes_to_nodes_of_this_cluster():
    program = recorded_from(organization(environment={"addons": {"aws-ebs-csi-driver": {}, "aws-efs-csi-driver": {}}}))
    cluster = program.one("hyperpod:index:Cluster").made["clusterArn"]
    (attach,) = [each for each in statements(program, "aws-ebs-csi-driver") if each["Sid"] == "Attach"]
    assert attach["Resource"] == [cluster]
    attached = {each.inputs["policyArn"] for each in program.all("iam/rolePolicyAttachment:RolePolicyAttachment")}
    for driver in ("EBS", "EFS"):
        assert f"arn:aws:iam::aws:policy/service-role/Amazon{driver}CSIDriverPolicy" in attached
    policy = program.one("iam/rolePolicy:RolePolicy", "aws-ebs-csi-driver")
    assert program.waits(program.one("eks/addon:Addon", "aws-ebs-csi-driver"), policy)


def scaled(keda, **environment):
    data = {"autoscaling": {**ON, "keda": keda}, **environment}
    return recorded_from(organization(groups=FLEET, environment=data))


def test_keda_reads_the_metrics_that_it_scales_by():
    program = scaled({}, observability={"prometheus": True, "alerts": {"snsTopicArn": TOPIC}})
    identity = program.one("eks/podIdentityAssociation:PodIdentityAssociation", "keda")
    assert (identity.inputs["namespace"], identity.inputs["serviceAccount"]) == ("keda", "keda-operator")
    assert {"cloudwatch:GetMetricData", "aps:QueryMetrics"} <= actions(program, "keda")
    assert program.waits(program.one("Release", "keda"), identity), "pods get credentials when they are created"
    assert not any(action.startswith("aps:") for action in actions(scaled({}), "keda"))


def test_keda_works_without_karpenter():
    program = recorded_from(organization(environment={"autoscaling": {"keda": {}}}))
    assert program.waits(program.one("Release", "keda"), program.one("index:Readiness", "nodes"))
    assert program.one("index:Cluster").inputs.get("autoScaling") is None
    assert "karpenter" not in {each.name for each in program.all("iam/role:Role")}


def test_keda_takes_a_role_that_is_there():
    program = scaled({"role": ROLE.format("queues")})
    identity = program.one("eks/podIdentityAssociation:PodIdentityAssociation", "keda")
    assert identity.inputs["roleArn"] == ROLE.format("queues")
    assert "keda" not in {each.name for each in program.all("iam/role:Role")}


@pytest.mark.parametrize("key", ["scheduledUpdate", "autoPatch"])
def test_nodes_read_alarms_where_an_update_is_rolled_back_by_them(key):
    deployment = {"maximumBatchSize": {"type": "INSTANCE_COUNT", "value": 1}, "autoRollbackAlarms": ["gpu-errors"]}
    when = {
        "scheduledUpdate": {"scheduleExpression": "cron(0 3 ? * SUN *)"},
        "autoPatch": {"patchingStrategy": "WhenIdle"},
    }
    update = {key: {**when[key], "deploymentConfig": deployment}}
    program = recorded_from(organization(groups=[group("gpu", "ml.g5.12xlarge", 4, **update)]))
    assert "cloudwatch:DescribeAlarms" in actions(program, "nodes")
    assert "cloudwatch:DescribeAlarms" not in actions(recorded_from(organization()), "nodes")
