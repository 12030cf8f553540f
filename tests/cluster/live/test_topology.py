"""The tree of nodes in network layers 1, 2 and 3."""

from click.testing import CliRunner

from hpkit.cli import topology
from hpkit.cluster.live.topology import placements, tree_of
from tests.cluster.live.builders import node, observed, pod, task

NODES = (
    node("n1", "a", "b", "c"),
    node("n2", "a", "b", "c"),
    node("n3", "a", "b", "d"),
    node("n4", "a", "e", "f"),
    node("n5"),
)


def test_nodes_stand_under_their_network_nodes_and_those_without_apart():
    wide, none = tree_of(observed(nodes=NODES))
    assert (wide.name, wide.level, [each.name for each in wide.branches]) == ("a", 1, ["b", "e"])
    near = wide.branches[0].branches[0]
    assert (near.name, near.level, [leaf.node.name for leaf in near.leaves]) == ("c", 3, ["n1", "n2"])
    assert (none.name, [leaf.node.name for leaf in none.leaves]) == ("(no network layer)", ["n5"])
    assert [leaf.node.name for leaf in wide.all_leaves()] == ["n1", "n2", "n3", "n4"]


def test_use_is_what_pods_ask_for_and_names_their_tasks():
    tasks = (task("john", "train", 2, runs=True),)
    pods = (pod("john", "train", "n1"), pod("john", "other", "n1", gpus=0))
    (leaf, _) = tree_of(observed(nodes=NODES, pods=pods, tasks=tasks))[0].branches[0].branches[0].leaves
    assert (leaf.used, leaf.allocatable) == (4, 4)
    assert leaf.tasks == {"john/train": 1, "john/job-other": 1}


def test_how_far_apart_a_tasks_pods_sit():
    on = {"one": ["n1", "n1"], "near": ["n1", "n2"], "middle": ["n1", "n3"], "far": ["n1", "n4"], "apart": ["n1", "n5"]}
    pods = tuple(pod("john", name, where) for name, places in on.items() for where in places)
    tasks = tuple(task("john", name, 2, runs=True) for name in on)
    found = {each.task: (each.level, each.shared) for each in placements(observed(nodes=NODES, pods=pods, tasks=tasks))}
    assert found == {"apart": (0, None), "far": (1, "a"), "middle": (2, "b"), "near": (3, "c"), "one": (4, "n1")}
    assert list(found) == ["apart", "far", "middle", "near", "one"]


# The tree of the article's seven instances; tests/local/controllers/test_workloads.py has it on a real API server.
SEVEN = tuple(
    node(f"i{number}", "root", *above)
    for number, above in enumerate(
        [("left", "left-a")] * 3 + [("left", "left-b")] * 2 + [("right", "right-a")] * 2,
        start=1,
    )
)


def drawn(monkeypatch, form):
    monkeypatch.setattr(topology, "observe", lambda *_arguments, **_more: observed(nodes=SEVEN))
    done = CliRunner().invoke(topology.command, ["--stack", "topology-prod", "--format", form], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_a_tree_of_seven_instances_is_drawn_for_mermaid(monkeypatch):
    first, *lines = drawn(monkeypatch, "mermaid").splitlines()
    assert first == "flowchart TD"
    arrows = {tuple(line.partition("[")[0].split(" --> ")) for line in map(str.strip, lines) if "-->" in line}
    assert arrows == {
        *(("root", name) for name in ("left", "right")),
        *(("left", name) for name in ("left_a", "left_b")),
        ("right", "right_a"),
        *(("left_a", name) for name in ("i1", "i2", "i3")),
        *(("left_b", name) for name in ("i4", "i5")),
        *(("right_a", name) for name in ("i6", "i7")),
    }
    assert sum("<br/>ml.g5.12xlarge" in line for line in lines) == 7


def test_a_tree_of_seven_instances_is_drawn_in_text(monkeypatch):
    names = ["root", "left", "left-a", "i1", "i2", "i3", "left-b", "i4", "i5", "right", "right-a", "i6", "i7"]
    text = drawn(monkeypatch, "text")
    places = [text.index(name) for name in names]
    assert places == sorted(places)
