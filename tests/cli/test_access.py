"""The formats of `hpkit cluster access`."""

import csv

from hpkit.cli.access import _as_csv, _print
from hpkit.cluster.access.model import Grant, Row


def test_the_name_of_a_role_is_no_formula_of_a_spreadsheet():
    row = Row("arn:aws:iam::123456789012:role/ada", ("team ada",), {"hyperpod-ns-ada": (Grant("=1+1", "group ada"),)})
    said = list(csv.reader(_as_csv(["hyperpod-ns-ada"], [row]).splitlines()))
    assert said == [
        ["principal", "in file", "hyperpod-ns-ada"],
        ["arn:aws:iam::123456789012:role/ada", "team ada", "'=1+1"],
    ]


def test_a_spreadsheet_says_too_who_made_the_cluster():
    rows = [Row("arn:aws:iam::123456789012:role/first", (), {}, of_creator=True), Row("role/stranger", (), {})]
    said = list(csv.reader(_as_csv([], rows).splitlines()))
    assert [in_file for _, in_file in said[1:]] == ["no; it created the cluster", "no"]


def test_roles_that_could_not_be_read_are_not_reported_as_nothing(capsys):
    place = "hyperpod-ns-ada"
    rows = [Row("role/ada", ("team ada",), {}, unread=True), Row("role/gone", ("team ada",))]
    _print([place], rows, ())
    _, ada, gone = capsys.readouterr().out.splitlines()
    assert ada.split() == ["role/ada", "?", "?", "team", "ada"]
    assert "nothing" in gone
    assert "role/ada,team ada,?" in _as_csv([place], rows)
