"""`hpkit catalog hash-chart` prints the value for `cluster.dependencies.sha256`."""

from click.testing import CliRunner

from hpkit.cli.organization.chart_hash import command
from hpkit.config.reading.chart import chart_hash


def test_the_command_prints_the_hash_of_a_folder(tmp_path):
    (tmp_path / "Chart.yaml").write_text("name: hyperpod-dependencies\nversion: 0.1.0\n")
    done = CliRunner().invoke(command, [str(tmp_path)])
    assert (done.exit_code, done.output.strip()) == (0, chart_hash(tmp_path))
    (tmp_path / "Chart.yaml").write_text("name: another\nversion: 0.1.0\n")
    assert CliRunner().invoke(command, [str(tmp_path)]).output.strip() != done.output.strip()
