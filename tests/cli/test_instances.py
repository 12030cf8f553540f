"""`hpkit catalog instances`."""

import json

import pytest

from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT


def test_without_pattern_every_type_is_listed_in_80_columns():
    text = hpkit("catalog", "instances", cwd=ROOT).stdout
    assert "ml.p5.48xlarge" in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "?" in text


@pytest.mark.parametrize(("pattern", "count"), [("p5en", 1), ("ml.g5.*", 8), ("ml.p5.48xlarge", 1)])
def test_a_pattern_is_a_part_of_the_name_or_a_glob(pattern, count):
    found = json.loads(hpkit("catalog", "instances", pattern, "--format", "json", cwd=ROOT).stdout)["items"]
    assert len(found) == count


def test_unknown_is_null_in_json_and_sources_name_page_and_day():
    (row,) = json.loads(
        hpkit("catalog", "instances", "ml.g7.2xlarge", "--format", "json", "--sources", cwd=ROOT).stdout
    )["items"]
    assert row["vcpu"] is None
    assert row["sources"]["architecture"]["url"].startswith("https://")
    text = hpkit("catalog", "instances", "ml.p5.48xlarge", "--sources", cwd=ROOT).stdout
    assert "maxPods" in text
    assert "docs.aws.amazon.com" in text


def test_no_match_names_the_nearest_and_exits_1():
    result = hpkit("catalog", "instances", "ml.p5.84xlarge", cwd=ROOT)
    assert result.returncode == 1
    assert "ml.p5.48xlarge" in result.stderr
