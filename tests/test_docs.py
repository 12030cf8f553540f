"""Links of the pages lead somewhere, and what the page of Karpenter shows is accepted."""

import re
import textwrap
from pathlib import Path

import pytest
import yaml

from tests.builders import findings

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")])


# A test, a case of one, or a file that has more cases at night.
NIGHTLY = r'mark\.nightly|get\("HPKIT_(?:NIGHTLY|KILLS)"'


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_page_of_contributing_says_of_every_nightly_test_what_the_gate_runs():
    marked = {name_of(file) for file in (ROOT / "tests").rglob("test_*.py") if re.search(NIGHTLY, file.read_text())}
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `tests/")]
    assert {name for row in rows for name in re.findall(r"`(tests/[^`]+)`", row)} == marked


def test_the_page_of_the_local_cluster_says_every_flag_of_the_api_server():
    source = (ROOT / "local" / "kubernetes" / "apiserver.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "local-cluster.md").read_text(encoding="utf-8")
    assert set(re.findall(r'"(--[a-z-]+)=', source)) | set(re.findall(r'f"(--[a-z-]+)=', source)) == set(
        re.findall(r"`(--[a-z-]+)`", page)
    )


@pytest.fixture
def autoscale():
    found = yaml.safe_load((ROOT / "stacks" / "autoscale.yaml").read_text(encoding="utf-8"))
    # The range of the examples, which is for documents, has a finding of its own.
    found["environments"]["dev"]["eks"]["endpoint"]["publicCidrs"] = ["52.10.20.0/24"]
    return found


def snippets():
    text = (ROOT / "docs" / "autoscaling.md").read_text(encoding="utf-8")
    return [yaml.safe_load(textwrap.dedent(each)) for each in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_the_section_that_the_page_of_karpenter_shows_is_accepted(autoscale):
    section, _ = snippets()
    autoscale["environments"]["dev"] |= section
    assert findings(autoscale) == []


def test_the_warm_pool_that_the_page_of_karpenter_shows_is_accepted(autoscale):
    _, pools = snippets()
    autoscale["environments"]["dev"]["autoscaling"]["nodePools"] = pools
    assert findings(autoscale) == []
