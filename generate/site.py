"""Hooks of mkdocs: the order of the sections, and links to files outside docs/."""

import os
import re
from pathlib import Path
from typing import Any

SECTIONS = ("Tutorials", "Guides", "Reference", "Explanation", "Decisions")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def on_nav(nav: Any, **_: Any) -> Any:
    """Order the sections by what a reader needs first."""
    nav.items.sort(key=lambda item: SECTIONS.index(item.title) if item.title in SECTIONS else -1)
    return nav


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Lead links to files outside docs/ to the repository, or leave their words where no repository is named."""
    folder = Path(config["docs_dir"])

    def link(match: re.Match[str]) -> str:
        words, target, fragment = match.groups(default="")
        path = os.path.relpath(folder / Path(page.file.src_uri).parent / target, folder)
        inside = not path.startswith("..") and not (folder / path).is_dir()
        if inside:
            return match[0]
        name = os.path.normpath(Path("docs") / path)
        return (
            f"[{words}]({config['repo_url'].rstrip('/')}/blob/main/{name}{fragment})" if config["repo_url"] else words
        )

    return _LINK.sub(link, markdown)
