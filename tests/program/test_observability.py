"""The resources of observability: recipients of alerts, access of and to Grafana, roles of pods."""

import json

import pytest

from tests.builders import group, organization
from tests.program.recorder import recorded_from

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


def test_without_alerts_nobody_is_told():
    program = observed(prometheus=True)
    assert program.all("amp/alertManagerDefinition") == []
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
def test_one_add_on_alone_measures_accelerators(prometheus):
    addon = observed(cloudwatch=True, prometheus=prometheus).named("eks/addon:Addon")["amazon-cloudwatch-observability"]
    values = json.loads(addon.inputs["configurationValues"])
    kubernetes = values["agent"]["config"]["logs"]["metrics_collected"]["kubernetes"]
    assert kubernetes.get("accelerated_compute_metrics", True) is not prometheus


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
    deployment = {
        "maximumBatchSize": {"type": "INSTANCE_COUNT", "value": 1},
        "autoRollbackAlarms": ["gpu-errors"],
    }
    when = {
        "scheduledUpdate": {"scheduleExpression": "cron(0 3 ? * SUN *)"},
        "autoPatch": {"patchingStrategy": "WhenIdle"},
    }
    update = {key: {**when[key], "deploymentConfig": deployment}}
    program = recorded_from(organization(groups=[group("gpu", "ml.g5.12xlarge", 4, **update)]))
    assert "cloudwatch:DescribeAlarms" in actions(program, "nodes")
    assert "cloudwatch:DescribeAlarms" not in actions(recorded_from(organization()), "nodes")
