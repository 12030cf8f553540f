"""Each rule's example is a single difference between a failing and a passing file."""

from hpkit.checks import RULES
from hpkit.cli.organization.rules import examples as shown

MOST_LINES = 25


def test_every_rule_shows_few_lines_of_which_some_fail():
    examples = shown()
    assert list(examples) == [rule.id for rule in RULES]
    for rule, example in examples.items():
        fails, passes = ([line for line in example["diff"] if line.startswith(sign)] for sign in ("- ", "+ "))
        assert 0 < len(fails) + len(passes) <= MOST_LINES, rule
        assert example["finding"]["fix"], rule
