"""What must not stand in the repository."""

import re

# Spelt in halves, so that this file does not find itself.
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(?:ho" r"me|ro" r"ot|Us" r"ers|wo" r"rk)/[\w.]")
HOW_WORK_IS_ORGANISED = re.compile(r"\b(?:sub" r"agents?|inte" r"grator|develop" r"er session)\b", re.IGNORECASE)
TEXT = (".py", ".md", ".sh", ".bat", ".toml", ".yaml", ".txt", ".properties", ".in", ".lock", ".java", "")


def found(repository, pattern: re.Pattern[str]) -> list[str]:
    """Every line the pattern finds, with its place."""
    lines = []
    for path in repository.files(*TEXT):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                lines.append(f"{repository.name(path)}:{number}: {line.strip()[:100]}")
    return lines


def test_no_machine_paths(repository):
    """Does no file name a directory of the machine it was written on?"""
    assert found(repository, MACHINE_PATHS) == []


def test_nothing_about_how_work_is_organised(repository):
    """Does the project speak of itself and its users only?"""
    assert found(repository, HOW_WORK_IS_ORGANISED) == []


def test_locks_carry_no_addresses(repository):
    """Do the lock files name versions and hashes, and no place to download from?"""
    locks = list(repository.files(".lock", ".in", under="requirements"))
    bad = [repository.name(path) for path in locks if re.search(r"://|--(extra-)?index|--find-links", path.read_text())]

    assert len(locks) >= 6
    assert bad == []


def test_locks_pin_every_package_by_hash(repository):
    """Does every package in a lock have one version and at least one hash?"""
    for path in repository.files(".lock", under="requirements"):
        entries = re.split(r"\n(?=[a-z0-9])", re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE))
        loose = [entry[:40] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]

        assert (repository.name(path), loose) == (repository.name(path), [])
