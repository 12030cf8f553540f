"""Moving resources that only the second stack describes: no resource is lost, and no reference dangles."""

from hpkit.adopt.state import loses_claims, moved, with_state_only
from hpkit.plan.derive import derive
from hpkit.program.recording import record
from tests import builders

LUSTRE = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}


def organization():
    return builders.organization(
        teams=[{**builders.team("nlp"), "registry": ["train"], "memberRole": {"permissionSets": ["NLP"]}}],
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 3}]},
        environment={"account": "123456789012", "storage": {"lustre": LUSTRE}},
    )


def state_of(recording):
    """Return the state after an `up` of a recording."""
    resources = with_state_only({"deployment": {}}, recording)["deployment"]["resources"]
    ids = {registered["urn"]: registered.get("id", "") for registered in resources}
    for registered in recording.resources.values():
        if registered.urn not in ids:
            resource = {
                "urn": registered.urn,
                "type": registered.type,
                "custom": True,
                "id": registered.name,
                "inputs": dict(registered.inputs),
            }
            resource |= {
                "outputs": dict(registered.inputs),
                "parent": registered.parent,
                "dependencies": sorted(registered.after),
            }
            resource |= {"propertyDependencies": {name: sorted(urns) for name, urns in registered.uses.items()}}
            resources.append(resource | {"provider": f"{registered.provider}::{ids[registered.provider]}"})
    return {"version": 3, "deployment": {"resources": resources}}


def test_nothing_is_lost_and_every_reference_has_its_resource():
    before = record(derive(builders.typed(organization()), "dev"))
    after = builders.typed(builders.split(organization()))
    staying, recording = record(derive(after, "dev")), record(derive(after, "governance"))
    source, target, count = moved(
        state_of(before), with_state_only({"deployment": {}}, recording), staying=staying, recording=recording
    )
    urns = [{resource["urn"] for resource in state["deployment"]["resources"]} for state in (source, target)]
    renamed = {urn.replace("urn:pulumi:acme-governance::", "urn:pulumi:acme-dev::") for urn in urns[1]}
    assert before.resources.keys() <= urns[0] | renamed
    assert count == len(before.resources.keys() - urns[0])
    leaving = ("ComputeQuota", "AccessEntry", "Repository::", "Role::team-nlp", "PersistentVolume", "Job::directory-")
    assert {urn for urn in recording.resources if any(name in urn for name in leaving)} <= urns[1]
    for state, there in zip((source, target), urns, strict=True):
        for resource in state["deployment"]["resources"]:
            of_properties = resource.get("propertyDependencies", {}).values()
            assert {*resource.get("dependencies", ()), *(urn for found in of_properties for urn in found)} <= there
            assert resource.get("provider", "").rpartition("::")[0] in {"", *there}
    for kind in ("core/v1:PersistentVolume", "core/v1:PersistentVolumeClaim", "batch/v1:Job"):
        was, now = (
            {name: resource.inputs for name, resource in made.named(kind).items()} for made in (before, recording)
        )
        assert str(was).replace("lustre-id", "fs-0123456789abcdef0") == str(now), "nothing is replaced"
    # The first stack's guard would reject the removal of the team.
    guards = [resource for resource in source["deployment"]["resources"] if resource["urn"].endswith("::keep-parts")]
    assert not any("nlp" in part for resource in guards for part in resource["inputs"]["parts"])


def test_a_move_that_was_interrupted_is_finished_by_the_next():
    before = record(derive(builders.typed(organization()), "dev"))
    after = builders.typed(builders.split(organization()))
    staying, recording = record(derive(after, "dev")), record(derive(after, "governance"))
    state, empty = state_of(before), with_state_only({"deployment": {}}, recording)
    first = moved(state, empty, staying=staying, recording=recording)
    again = moved(state, first[1], staying=staying, recording=recording)
    assert again == first


def test_claims_that_neither_stack_describes_would_be_deleted():
    before = record(derive(builders.typed(organization()), "dev"))
    after = builders.split(organization())
    whole = record(derive(builders.typed(after), "governance"))
    assert not loses_claims(state_of(before), whole)
    del after["environments"]["governance"]["storage"]
    assert loses_claims(state_of(before), record(derive(builders.typed(after), "governance")))
    assert not loses_claims(state_of(whole), whole)
