"""Cases are changes of a base that keep its layout, and a slip in one is said, not guessed at."""

import pytest

from generate.cases import cases
from hpkit.errors import InputError

BASE = """\
organization: acme
teams:
  - name: ada
    sharing: {strategy: Lend}
  - {name: bob, fairShareWeight: 40}
environments:
  dev:
    region: us-west-2  # Oregon
    eks:
      version: "1.35"
"""
FILE = """\
fails:
  any:
    finds: [{{severity: error, path: teams, at: x, message: m, fix: f}}]
passes:
  it:
    {}
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return the text that comes of one passing case."""
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "tests" / "stacks" / "rules").mkdir(parents=True)
    (tmp_path / "tests" / "stacks" / "base.yaml").write_text(BASE)
    monkeypatch.chdir(tmp_path)

    def make(*lines):
        text = FILE.format("\n    ".join(lines) or "{}")
        (tmp_path / "tests" / "stacks" / "rules" / "CAP001.yaml").write_text(text)
        return cases("CAP001")[-1].text

    return make


@pytest.mark.parametrize(
    ("lines", "old", "new"),
    [
        (["change:", "  teams[bob].fairShareWeight: 0"], "40}", "0}"),
        (["change:", "  environments.dev.eks.version: 1.30"], '"1.35"', "1.30"),
        (["change:", "  environments.dev.region: 'x'"], "us-west-2  # Oregon", "'x'  # Oregon"),
        (["change:", "  teams[ada].sharing.borrowLimit: 5"], "Lend}", "Lend, borrowLimit: 5}"),
        (["change:", "  teams[ada].fairShareWeight: 5"], "Lend}\n", "Lend}\n    fairShareWeight: 5\n"),
        (
            ["change:", "  teams[bob]:", "    name: cyd", "    tags: [a]"],
            "{name: bob, fairShareWeight: 40}",
            "name: cyd\n    tags: [a]",
        ),
        (
            ["change:", "  teams[+]:", "    - name: cyd", "      tags: [a]", "    - {}"],
            "40}\n",
            "40}\n  - name: cyd\n    tags: [a]\n  - {}\n",
        ),
        (
            ["change:", "  environments.dev.eks:", "    existing:", "      name: x"],
            'version: "1.35"',
            "existing:\n        name: x",
        ),
        (["change:", "  teams[ada].sharing:", "    strategy: Lend"], " {strategy: Lend}", "\n      strategy: Lend"),
        (["remove: ['teams[ada]']"], "  - name: ada\n    sharing: {strategy: Lend}\n", ""),
        (["remove: ['teams[bob].name']"], "name: bob, ", ""),
        (["remove: ['teams[bob].fairShareWeight']"], ", fairShareWeight: 40", ""),
        (["remove: [environments.dev.eks]"], '    eks:\n      version: "1.35"\n', ""),
        (["replace: {'eks:': 'esk:'}"], "eks:", "esk:"),
    ],
)
def test_a_change_touches_only_what_it_names(made, lines, old, new):
    assert made(*lines) == BASE.replace(old, new)


def test_what_is_added_at_one_line_goes_to_the_value_that_its_path_names(made):
    text = made("change:", "  environments.dev.tags: {a: b}", "  tags: {c: d}", "  environments.dev.eks.x: 1")
    assert text == f"{BASE}      x: 1\n    tags: {{a: b}}\ntags: {{c: d}}\n"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["change:", "  teams[adaa].sharing: {}"], "it: `adaa` of `teams.adaa` is not there"),
        (["change:", "  teams[cyd]: {}"], "`teams[cyd]` is not there; [+] adds to a list"),
        (["change:", "  teams[bob].tags:", "    - a"], "write its value in brackets too"),
        (["change:", "  teams[ada]: {}", "remove: ['teams[ada].sharing']"], "two changes of one place"),
        (["change:", "  teams[+]: {name: cyd}"], "`teams[+]` adds the items of a list to a list"),
        (["change:", "  environments[+]: [a]"], "`environments[+]` adds the items of a list to a list"),
        (["remove: [environments.dev.network]"], "`environments.dev.network` is not there"),
        (["remove: ['teams[ada].name']"], "change the item"),
        (["replace: {ada: eda, '- name': x, name: y}"], "`name` stands 2 times, not once"),
        (["chnage: {}"], "chnage"),
        (["finds: []"], "finds"),
        (["replace: {}", "replace: {}"], "the key `replace` stands twice"),
        (["change:", "  organization: !env x"], "the tag `!env` has no meaning"),
        (["change:", "  organization: on"], "boolean to YAML 1.1"),
    ],
)
def test_a_slip_is_refused_with_the_file_that_has_it(made, lines, says):
    with pytest.raises(InputError, match=r"^tests/stacks/rules/CAP001.yaml: ") as raised:
        made(*lines)
    assert says in str(raised.value)


def test_a_rule_without_a_file_of_cases_is_refused(made):
    with pytest.raises(InputError, match="no such file"):
        cases("CAP002")
