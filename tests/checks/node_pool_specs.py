"""Specs of NodePools, each with a part of the API server's error message, or nothing if the spec is valid."""

REFERENCE = {"group": "karpenter.sagemaker.amazonaws.com", "kind": "HyperpodNodeClass", "name": "burst"}


def spec(*, template=None, **more):
    """Return a minimal NodePool spec with additions."""
    inside = {"nodeClassRef": REFERENCE, "requirements": [], **(template or {})}
    return {"template": {"spec": inside}, **more}


def _requirement(**more):
    return spec(template={"requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", **more}]})


def _budget(**more):
    return spec(disruption={"budgets": [{"nodes": "0", **more}]})


def _labels(labels):
    return {"template": {"metadata": {"labels": labels}, "spec": spec()["template"]["spec"]}}


SPECS = {
    "the least": (spec(), ""),
    "no template": ({}, "template"),
    "no requirements": ({"template": {"spec": {"nodeClassRef": REFERENCE}}}, "requirements"),
    "a requirement that is text": (spec(template={"requirements": ["zone"]}), "must be of type object"),
    "In with values": (_requirement(values=["us-west-2a"]), ""),
    "In without values": (_requirement(), "no such key"),
    "In with no value": (_requirement(values=[]), "must have a value defined"),
    "In with too few": (_requirement(values=["a"], minValues=2), "'minValues'"),
    "Exists": (_requirement(operator="Exists"), ""),
    "an operator that is not": (_requirement(operator="Within", values=["a"]), "supported values"),
    "Gt of a number": (_requirement(operator="Gt", values=["4"]), ""),
    "Gt of a negative number": (_requirement(operator="Gt", values=["-4"]), "single positive integer"),
    "Gt of a word": (_requirement(operator="Gt", values=["four"]), "requirements"),
    "a key of Karpenter": (_requirement(key="karpenter.sh/registered", values=["a"]), "restricted"),
    "its capacity type": (_requirement(key="karpenter.sh/capacity-type", values=["spot"]), ""),
    "a key with a blank": (_requirement(key="a b", values=["a"]), "should match"),
    "a key that is too long": (_requirement(key="a" * 317, values=["a"]), "Too long"),
    "a value of any length": (_requirement(values=["a" * 64]), ""),
    "101 requirements": (spec(template={"requirements": [{"key": "a", "operator": "Exists"}] * 101}), "at most 100"),
    "minValues of 51": (_requirement(values=["a"] * 51, minValues=51), "less than or equal to 50"),
    "minValues of 1.5": (_requirement(values=["a"] * 51, minValues=1.5), "integer"),
    "a reference without a name": (spec(template={"nodeClassRef": {**REFERENCE, "name": ""}}), "name may not be empty"),
    "a group with a slash": (spec(template={"nodeClassRef": {**REFERENCE, "group": "a/b"}}), "should match"),
    "labels": (_labels({"acme.com/pool": "a"}), ""),
    "a label of Karpenter": (_labels({"karpenter.sh/nodepool": "a"}), "restricted"),
    "a label of a domain that ends so": (_labels({"mykarpenter.sh/pool": "a"}), "restricted"),
    "a label that is the domain": (_labels({"karpenter.sh": "a"}), "restricted"),
    "a label of the kubelet": (_labels({"kubernetes.io/hostname": "a"}), "restricted"),
    "a label with a number": (_labels({"a": 1}), "must be of type string"),
    "a label with a blank": (_labels({"a": "b c"}), "should match"),
    "a label without a value": (_labels({"a": ""}), ""),
    "101 labels": (_labels({f"l{index}": "a" for index in range(101)}), "at most 100"),
    "a taint without a value": (spec(template={"taints": [{"key": "a", "effect": "NoSchedule"}]}), ""),
    "a taint with an empty value": (
        spec(template={"taints": [{"key": "a", "value": "", "effect": "NoSchedule"}]}),
        "should match",
    ),
    "a taint without a key": (spec(template={"taints": [{"effect": "NoSchedule"}]}), "key"),
    "a taint with an empty key": (spec(template={"taints": [{"key": "", "effect": "NoSchedule"}]}), "key"),
    "a taint of no effect": (spec(template={"taints": [{"key": "a", "effect": "Maybe"}]}), "supported values"),
    "one taint twice": (spec(template={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}), ""),
    "no expiry": (spec(template={"expireAfter": "Never"}), ""),
    "an expiry in days": (spec(template={"expireAfter": "30d"}), "should match"),
    "an expiry as a number": (spec(template={"expireAfter": 30}), "must be of type string"),
    "a budget": (_budget(), ""),
    "a budget without nodes": (spec(disruption={"budgets": [{"reasons": ["Empty"]}]}), ""),
    "a budget of 101 %": (_budget(nodes="101%"), "should match"),
    "a schedule alone": (_budget(schedule="@daily"), "must be set with"),
    "a duration alone": (_budget(duration="8h"), "must be set with"),
    "both": (_budget(schedule="0 9 * * mon-fri", duration="8h"), ""),
    "a schedule in words": (_budget(schedule="every day", duration="8h"), "should match"),
    "a duration in seconds": (_budget(schedule="@daily", duration="8s"), "should match"),
    "a reason twice": (_budget(reasons=["Empty", "Empty"]), "Duplicate value"),
    "a reason that is not": (_budget(reasons=["Bored"]), "supported values"),
    "51 budgets": (spec(disruption={"budgets": [{"nodes": "0"}] * 51}), "at most 50"),
    "a policy that is not": (spec(disruption={"consolidationPolicy": "Always"}), "supported values"),
    "limits": (spec(limits={"cpu": 8, "memory": "1Ti", "nvidia.com/gpu": "16"}), ""),
    "a limit with two units": (spec(limits={"memory": "1GiB"}), "should match"),
    "a limit with a fraction": (spec(limits={"cpu": 1.5}), "type"),
    "a weight": (spec(weight=100), ""),
    "a weight of 0": (spec(weight=0), "greater than or equal to 1"),
    "a weight of 101": (spec(weight=101), "less than or equal to 100"),
    "a weight as text": (spec(weight="5"), "must be of type integer"),
    "static": (spec(replicas=1, limits={"nodes": 1}), ""),
    "static with a limit of another kind": (spec(replicas=1, limits={"cpu": 1}), "only 'limits.nodes'"),
    "static with a weight": (spec(replicas=1, weight=1), "'weight' is not supported"),
    "more replicas than a number holds": (spec(replicas=2**63), "type"),
    "a field that it does not know": (spec(colour="red"), "unknown field"),
}
