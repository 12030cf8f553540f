"""The file's values override hpkit's, map by map."""

from hypothesis import given
from hypothesis import strategies as st

from hpkit.plan.merging import merged

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
KEYS = st.sampled_from(["a", "b", "c"])
MAPS = st.dictionaries(KEYS, st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3)), max_size=3)


@given(MAPS, MAPS)
def test_what_the_file_says_holds_and_the_rest_stays(base, over):
    result = merged(base, over)
    assert merged(result, over) == result
    assert set(result) == set(base) | set(over)
    for key in set(base) - set(over):
        assert result[key] == base[key]
    for key, value in over.items():
        if not isinstance(value, dict):
            assert result[key] == value


@given(MAPS)
def test_nothing_laid_over_changes_nothing(base):
    assert merged(base, {}) == base
    assert merged({}, base) == base
