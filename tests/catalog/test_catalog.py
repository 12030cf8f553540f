"""The catalog is consistent with botocore, pulumi-aws and itself."""

import datetime
import gzip
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import moto
import pulumi_aws
import pytest
from botocore.loaders import Loader
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from pulumi._types import input_type_types

from generate.catalog import service_model_text
from hpkit.catalog import (
    TypeFacts,
    addons,
    find_region,
    instance_type,
    instance_types,
    is_local_zone,
    is_offered,
    is_older,
    is_zone_id,
    is_zone_of,
    kubernetes_versions,
    limit,
    regions,
    type_facts,
)
from hpkit.errors import CatalogError
from hpkit.project import project_root

TYPES = {each.name: each for each in instance_types()}
FIGURES = {
    "vcpu": "vcpu",
    "threads_per_core": "threadsPerCore",
    "memory_gib": "memoryGiB",
    "accelerators": "accelerators",
    "accelerator_kind": "kind",
    "accelerator_resource": "resource",
    "neuron_cores": "neuronCores",
    "efa_interfaces": "efa",
    "addresses": "addresses",
    "max_pods": "maxPods",
    "architecture": "architecture",
    "mig_profiles": "mig",
}


@cache
def shapes():
    return Loader().load_service_model("sagemaker", "service-2")["shapes"]


def test_the_catalog_holds_exactly_the_types_that_the_cluster_api_accepts():
    assert sorted(TYPES) == sorted(shapes()["ClusterInstanceType"]["enum"])


def test_limits_are_botocores_own():
    from importlib import resources

    text = resources.files("hpkit.catalog").joinpath("data", "service_model.json").read_text(encoding="utf-8")
    assert text == service_model_text(), "run `make generate`"
    assert limit("PriorityWeight").max == shapes()["PriorityWeight"]["max"]
    assert limit("ClusterNodeRecovery").enum == tuple(shapes()["ClusterNodeRecovery"]["enum"])


@pytest.mark.parametrize("listed_type", TYPES.values(), ids=lambda listed_type: listed_type.name)
def test_every_known_figure_has_a_source_with_address_and_date(listed_type):
    for attribute, figure in FIGURES.items():
        if getattr(listed_type, attribute) is None:
            continue
        source = listed_type.sources[figure]
        assert source.url.startswith("https://")
        assert source.title
        datetime.date.fromisoformat(source.date)


@pytest.mark.parametrize("listed_type", TYPES.values(), ids=lambda listed_type: listed_type.name)
def test_an_unknown_figure_is_none_and_never_zero(listed_type):
    assert listed_type.vcpu is None or listed_type.vcpu > 0
    assert listed_type.memory_gib is None or listed_type.memory_gib > 0
    assert listed_type.max_pods is None or listed_type.max_pods > 0
    assert listed_type.addresses is None or listed_type.addresses > (listed_type.max_pods or 0)
    # A family without accelerators has none in every type; in other families, each type has a number or no entry.
    has_accelerators = listed_type.name.split(".")[1].startswith(("p", "g", "trn"))
    assert listed_type.accelerators != 0 or not has_accelerators
    assert (listed_type.accelerator_kind is not None) == has_accelerators


def test_what_is_not_documented_is_unknown():
    assert TYPES["ml.g7.2xlarge"].vcpu is None
    assert TYPES["ml.g7.2xlarge"].accelerators is None
    assert TYPES["ml.m7i.xlarge"].max_pods is None


@pytest.mark.parametrize(
    ("name", "vcpu", "memory", "accelerators", "resource"),
    [
        ("ml.g5.12xlarge", 48, 192, 4, "nvidia.com/gpu"),
        ("ml.p5.48xlarge", 192, 2048, 8, "nvidia.com/gpu"),
        ("ml.trn1.32xlarge", 128, 512, 16, "aws.amazon.com/neurondevice"),
        ("ml.c5.2xlarge", 8, 16, 0, None),
    ],
)
def test_well_known_types_have_their_figures(name, vcpu, memory, accelerators, resource):
    each = TYPES[name]
    assert (each.vcpu, each.memory_gib, each.accelerators) == (vcpu, memory, accelerators)
    assert each.accelerator_resource == resource


def test_threads_per_core_are_those_that_ec2_describes():
    recorded = Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz"
    described = json.loads(gzip.decompress(recorded.read_bytes()))
    assert {name: each.threads_per_core for name, each in TYPES.items() if each.threads_per_core} == {
        name: described[name.removeprefix("ml.")]["VCpuInfo"]["DefaultThreadsPerCore"]
        for name in TYPES
        if name.removeprefix("ml.") in described
    }


def test_neuron_cores_are_those_that_ec2_describes_where_no_setting_of_the_runtime_decides():
    recorded = Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz"
    described = json.loads(gzip.decompress(recorded.read_bytes()))
    cores = {name: each.neuron_cores for name, each in TYPES.items() if each.neuron_cores is not None}
    chips = {name: described[name.removeprefix("ml.")]["NeuronInfo"]["NeuronDevices"][0] for name in cores}
    assert cores == {name: each["Count"] * each["CoreInfo"]["Count"] for name, each in chips.items()}
    assert sorted(cores) == ["ml.trn1.32xlarge", "ml.trn1n.32xlarge"]


@pytest.mark.parametrize(
    ("name", "threads", "vcpu"),
    [
        ("ml.g5.12xlarge", 1, 24),
        ("ml.g5.12xlarge", 2, 48),
        ("ml.g5.12xlarge", None, 48),
        ("ml.m7g.4xlarge", 1, 16),
        ("ml.m7g.4xlarge", 2, 16),
        ("ml.p6e-gb200.36xlarge", 1, 144),
    ],
)
def test_one_thread_of_two_halves_the_vcpus(name, threads, vcpu):
    assert TYPES[name].with_threads(threads).vcpu == vcpu


@pytest.mark.parametrize(
    ("name", "pods"), [("ml.g6e.xlarge", 14), ("ml.c5.large", 9), ("ml.c8g.48xlarge", 49), ("ml.g7e.2xlarge", 49)]
)
def test_pods_are_those_of_the_guides_table(name, pods):
    assert TYPES[name].max_pods == pods


def test_mig_profiles_are_those_of_the_api_and_fit_one_gpu():
    allowed = set(shapes()["MIGProfileType"]["enum"])
    profiles = set()
    for listed_type in TYPES.values():
        for profile in listed_type.mig_profiles or ():
            profiles.add(profile.name)
            assert profile.slices * profile.max_per_accelerator <= listed_type.mig_slices_per_accelerator
            assert profile.max_per_accelerator >= 1
    assert profiles <= allowed


def test_an_unknown_type_names_the_nearest():
    with pytest.raises(CatalogError, match=r"did you mean ml\.p5\.48xlarge"):
        instance_type("ml.p5.48xlarg")


def test_task_governance_is_in_fifteen_regions_all_with_hyperpod():
    governed = [region for region in regions() if region.task_governance]
    assert len(governed) == 15
    assert all(region.hyperpod_eks for region in governed)
    assert find_region("eu-west-3") is None


def test_default_pins_are_versions_that_are_listed():
    for addon in addons():
        if addon.default is not None:
            assert addon.default in {each.version for each in addon.versions}
    governance = next(addon for addon in addons() if addon.name.endswith("taskgovernance"))
    assert {each.version: each.kueue for each in governance.versions}[governance.default] == "0.19.2"
    assert governance.needs_nodes


def test_kubernetes_versions_are_text_and_oldest_first():
    assert kubernetes_versions()[0] == "1.30"
    assert list(kubernetes_versions()) == sorted(kubernetes_versions())


def test_network_layers_are_those_of_the_page():
    layers = {each.name: each.network_layers for each in instance_types()}
    assert (layers["ml.p5.48xlarge"], layers["ml.p6-b200.48xlarge"], layers["ml.g5.12xlarge"]) == (3, 4, 0)
    assert set(layers.values()) == {0, 3, 4}
    assert all("networkLayers" in each.sources for each in instance_types())


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("v1.0.0-eksbuild.4", "v1.2.2-eksbuild.1", True),
        ("v1.10.0-eksbuild.1", "v1.9.0", False),
        ("v1.2.2-eksbuild.1", "v1.2.2-eksbuild.2", False),
        ("newest", "v1.2.2", False),
        ("v1.0.0", "", False),
    ],
)
def test_versions_of_add_ons_are_in_the_order_of_their_numbers(version, than, older):
    assert is_older(version, than) is older


EC2 = Path(moto.__file__).parent / "ec2/resources"


def test_a_type_is_known_to_have_no_efa_only_where_ec2_has_none():
    with gzip.open(EC2 / "instance_types.json.gz") as file:
        recorded = json.load(file)
    for name, listed_type in TYPES.items():
        row = recorded.get(name.removeprefix("ml."))
        if row is not None and not row["NetworkInfo"].get("EfaSupported"):
            assert listed_type.efa_interfaces == 0, name


def test_types_are_not_offered_in_a_region_as_ec2_was_recorded():
    offered = {}
    for file in sorted((EC2 / "instance_type_offerings/region").glob("*.json.gz")):
        with gzip.open(file) as content:
            offered[file.name.partition(".")[0]] = {row["InstanceType"] for row in json.load(content)}
    recorded = set().union(*offered.values())
    for region in regions():
        for name in TYPES:
            short = name.removeprefix("ml.")
            expected = short not in recorded or region.name not in offered or short in offered[region.name]
            assert is_offered(name, region.name) == expected, (name, region.name)


def test_names_and_ids_of_zones_belong_to_their_region():
    zones = RegionsAndZonesBackend.zones
    for region, there in zones.items():
        for zone in there:
            assert is_zone_id(zone.zone_id)
            assert not is_zone_id(zone.name)
            for written in (zone.name, zone.zone_id):
                assert [name for name in zones if is_zone_of(written, name)] == [region]
    for local in ("us-west-2-lax-1a", "usw2-lax1-az1"):
        assert is_local_zone(local)
        assert is_zone_of(local, "us-west-2")
    assert not is_local_zone("us-west-2a")


DATA = json.loads((project_root() / "infra/hpkit/catalog/data/resource_types.json").read_text(encoding="utf-8"))
URNS = [
    line for file in (project_root() / "tests/program/urns").iterdir() for line in file.read_text("utf-8").splitlines()
]
# Keys of an entry that don't name properties.
NOT_PATHS = ("source", "note", "api", "calls", "more", "service", "autoname", "deletesFirst", "loss")
REGISTERED = {urn.split("::")[2].rpartition("$")[2] for urn in URNS}


def arguments_of(token: str) -> type:
    """Return pulumi_aws's class of a type's inputs.

    Through the service's package, which loads itself at first use: importing one of its modules before would leave it
    half empty for all later tests of this process.
    """
    _, place, name = token.split(":")
    module = sys.modules[getattr(getattr(pulumi_aws, place.split("/")[0]), name).__module__]
    return getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")


def classes_in(annotation: Any) -> Iterator[type]:
    """Yield the input classes in an annotation, such as the element class of a list."""
    if hasattr(annotation, "_pulumi_input_type"):
        yield annotation
    for part in get_args(annotation):
        yield from classes_in(part)


def names_of(arguments: type, path: str = "") -> set[str]:
    """Return the properties of an input class by path, including members of nested objects."""
    types = set()
    for name, annotation in input_type_types(arguments).items():
        inner = f"{path}.{name}" if path else name
        types |= {inner}.union(*(names_of(each, inner) for each in classes_in(annotation)))
    return types


@pytest.mark.parametrize("token", [each for each in DATA["types"] if each.startswith("aws:")])
def test_an_entry_names_its_source_and_properties_that_pulumi_aws_has(token):
    entry = DATA["types"][token]
    named = {path for key, paths in entry.items() if key not in NOT_PATHS for path in paths}
    assert entry["source"]
    assert named <= names_of(arguments_of(token))


def test_every_type_that_the_examples_register_has_an_entry():
    ours = {each for each in REGISTERED if each.startswith(("aws:", "hyperpod:", "kubernetes:helm"))}
    assert {each for each in ours if type_facts(each) == TypeFacts()} == set()


@pytest.mark.parametrize(
    ("token", "stated", "first"),
    [
        ("aws:iam/role:Role", ("name", "path"), True),
        ("aws:iam/role:Role", ("path",), False),
        ("aws:grafana/workspace:Workspace", ("name",), True),
        ("aws:cloudwatch/eventTarget:EventTarget", ("rule", "targetId"), True),
        ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", ("role", "policyArn"), True),
        ("aws:ecr/lifecyclePolicy:LifecyclePolicy", ("repository", "policy"), True),
        (
            "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
            ("clusterName", "principalArn", "policyArn"),
            False,
        ),
        ("aws:eks/podIdentityAssociation:PodIdentityAssociation", ("namespace", "serviceAccount"), False),
        ("aws:ec2/subnet:Subnet", ("vpcId", "cidrBlock"), False),
        ("aws:s3/bucketObjectv2:BucketObjectv2", ("bucket", "key"), False),
    ],
)
def test_a_replacement_deletes_first_what_has_a_name_of_the_program_or_always_does(token, stated, first):
    assert type_facts(token).deletes_before_create(stated) is first
