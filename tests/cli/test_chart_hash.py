"""A chart is the one that was looked at, or the program says so."""

import pytest

from hpkit.cli.chart_hash import chart_hash, mismatch
from hpkit.config.cluster import Dependencies
from hpkit.errors import InputError


@pytest.fixture
def chart(tmp_path):
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("name: hyperpod-dependencies\nversion: 0.1.0\n")
    (folder / "templates" / "agent.yaml").write_text("kind: DaemonSet\n")
    return folder


def wanted(chart="chart", sha256=None):
    return Dependencies(chart=chart, version="0.1.0", sha256=sha256)


def test_the_hash_changes_with_content_and_names_and_with_nothing_else(chart):
    first = chart_hash(chart)
    (chart / "templates" / "agent.yaml").touch()
    assert chart_hash(chart) == first
    (chart / "templates" / "agent.yaml").rename(chart / "templates" / "other.yaml")
    renamed = chart_hash(chart)
    (chart / "templates" / "other.yaml").write_text("kind: Deployment\n")
    assert len({first, renamed, chart_hash(chart)}) == 3


def test_the_chart_that_was_pinned_is_taken(chart):
    assert mismatch(chart.parent, wanted(sha256=chart_hash(chart))) == ""


def test_another_chart_is_refused_with_both_hashes(chart):
    said = mismatch(chart.parent, wanted(sha256="0" * 64))
    assert chart_hash(chart) in said
    assert "0" * 64 in said


def test_a_chart_without_a_hash_is_refused_with_the_line_to_write(chart):
    assert f"sha256: {chart_hash(chart)}" in mismatch(chart.parent, wanted())


def test_a_chart_that_is_not_there_is_said_to_be_missing(tmp_path):
    assert "there is no chart" in mismatch(tmp_path, wanted())


def test_a_link_that_leads_out_is_refused(chart):
    (chart / "templates" / "out.yaml").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="leads out"):
        chart_hash(chart)


def test_a_chart_in_a_registry_has_its_version():
    assert mismatch(None, wanted(chart="oci://registry.example/chart")) == ""
