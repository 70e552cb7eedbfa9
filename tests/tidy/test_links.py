"""Links between the documents lead somewhere."""

import re

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """A heading's anchor, as the common renderers make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_relative_links_resolve(repository):
    """Does every relative link in a document lead to a file that is there, and every fragment to a heading?"""
    broken = []
    for path in repository.files(".md"):
        for target in LINK.findall(path.read_text()):
            if "://" in target or target.startswith("mailto:"):
                continue
            file, _, fragment = target.partition("#")
            there = (path.parent / file) if file else path
            if not there.exists():
                broken.append(f"{repository.name(path)}: {target}")
            elif fragment and fragment not in map(anchor, HEADING.findall(there.read_text())):
                broken.append(f"{repository.name(path)}: {target} (no such heading)")

    assert broken == []
