"""The word lists of .vale/hpkit apply to pages and to texts in code, even if Vale can't be built.

The nightly run always checks them here; `make prose` has the same lists.
"""

import re

import pytest
import yaml

from tests.prose import CODE, GENERATED, pages, texts
from tests.test_docs import ROOT

pytestmark = pytest.mark.nightly

# Code and links on a page, and names in backticks, aren't prose.
_CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<[^>]+>|https?://\S+", re.DOTALL)


@pytest.fixture(scope="module", params=["Wording", "Terms"])
def rule(request):
    """Return a list of Vale's style as one expression."""
    data = yaml.safe_load((ROOT / ".vale" / "hpkit" / f"{request.param}.yml").read_text(encoding="utf-8"))
    flags = re.IGNORECASE if data["ignorecase"] else re.NOFLAG
    words = (rf"\b(?:{pattern})" if data["ignorecase"] else pattern for pattern in data["swap"])
    return request.param, re.compile("|".join(words), flags)


def test_pages_use_the_words_of_the_style(rule):
    name, pattern = rule
    problems = []
    for page in pages():
        if name == "Terms" and page.name == "architecture.md":  # Its tables name libraries.
            continue
        prose = _CODE.sub(" ", page.read_text(encoding="utf-8"))
        problems += [f"{page.name}: {match.group()}" for match in pattern.finditer(prose)]
    assert problems == []


def test_texts_in_code_use_the_words_of_the_style(rule):
    _, pattern = rule
    problems = []
    for file in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        if not file.is_relative_to(ROOT / GENERATED):
            for line, text in texts(file.read_text(encoding="utf-8")):
                problems += [f"{file}:{line}: {match.group()}" for match in pattern.finditer(_CODE.sub(" ", text))]
    assert problems == []
