"""Pages and drawings: complete, escaped, self-contained, and readable on a phone."""

from html.parser import HTMLParser

from hpkit.cluster.access.as_html import as_html as access_html
from hpkit.cluster.access.model import Row
from hpkit.cluster.live.as_html import status_html, topology_html
from hpkit.cluster.live.as_svg import topology_svg
from hpkit.cluster.live.status import status_of
from hpkit.cluster.live.topology import placements, tree_of
from tests.cluster.live.builders import node, observed, pod, queue, task
from tests.cluster.live.test_status import platform

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Parses a page, and checks that every element is closed where it was opened."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.cells = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] in ("td", "th", "li"):
            self.cells.append(text)


def seen():
    names = [f"n{number}" for number in range(40)]
    nodes = tuple(
        node(name, "a", f"b{number // 20}", f"c{number // 5}", ready=str(number != 7))
        for number, name in enumerate(names)
    )
    tasks = (task("john", "train", 2, runs=True), task("smith", "<b>wait</b>", 1))
    return observed(
        nodes=nodes,
        pods=(pod("john", "train", "n0"), pod("john", "train", "n30", gpus=2)),
        queues=(queue("john", 8, used=8), queue("smith", 4)),
        tasks=tasks,
        platform=platform(),
    )


def alone(page):
    """Check that a page loads nothing and runs no script."""
    content = Page(page)
    assert not {tag for tag, _ in content.seen} & {"script", "link", "img", "iframe"}
    assert not any({"src", "href"} & attributes.keys() for _, attributes in content.seen)
    assert "url(" not in page
    return content


def test_the_page_of_status_says_what_the_table_says_and_escapes_names():
    page = status_html("acme-prod", status_of(seen()), ("team john has <more>",))
    found = alone(page)
    assert {"john", "smith", "ml.g5.12xlarge gpu", "team john has <more>", "<b>wait</b>"} <= set(found.cells)
    assert "b" not in {tag for tag, _ in found.seen}


def test_the_page_of_topology_has_each_node_and_where_tasks_sit():
    tree, places = tree_of(seen()), placements(seen())
    found = alone(topology_html("acme-prod", tree, places))
    assert {*(f"n{number}" for number in range(40)), "john/train"} <= set(found.cells)
    assert "not ready" in found.cells


def shapes(text, kind):
    """Return the attributes of each shape of a class."""
    return [attributes for _, attributes in Page(text).seen if attributes.get("class") == kind]


def test_the_drawing_is_as_wide_as_a_phone_and_fills_squares_by_use():
    text = topology_svg(tree_of(seen()))
    for kind in ("box", "node", "used"):
        for each in shapes(text, kind):
            assert float(each["x"]) >= 0
            assert float(each["x"]) + float(each["width"]) <= 368
    assert len(shapes(text, "node")) == 40
    filled = sorted(float(each["height"]) for each in shapes(text, "used"))[-3:]
    assert filled == [0, 10, 20], "half of one, all of another"
    assert len(shapes(text, "lost")) == 1


def test_squares_do_not_lie_on_each_other():
    places = [(each["x"], each["y"]) for each in shapes(topology_svg(tree_of(seen())), "node")]
    assert len(set(places)) == len(places) == 40


def test_the_page_of_access_names_everybody():
    found = alone(access_html("acme-prod", ["cluster"], [Row("arn:x", ())], ["eve & co"]))
    assert {"arn:x", "eve & co"} <= set(found.cells)
