"""Writes the launchers in bin/ and bin/windows/ and the package's scripts from the list of tools in `cli/main.py`.

Run with the environment's Python: .venv-test/bin/python tools/generate_launchers.py
tests/tidy/test_doors.py generates them again and compares.
"""

import re
import sys
from pathlib import Path

from headrace.cli.main import ALIASES, TOOLS

ROOT = Path(__file__).resolve().parents[1]
OURS = frozenset({"headrace", "test", "environment.sh", "environment.bat", "headrace.bat"})
"""What lies beside the launchers and is written by hand."""

SHELL = """\
#!/bin/sh
# Kafka's name for this tool: bin/headrace sets itself up and runs it.
self=$(readlink -f -- "$0")
HEADRACE_INVOKED_AS=$0
export HEADRACE_INVOKED_AS
exec "${{self%/*}}/headrace" {tool} "$@"
"""

# What was typed never follows a `call`, which would read the per cent signs in it again: `--format "%t %p"`.
WINDOWS = """\
@echo off
rem Kafka's name for this tool: sets itself up as headrace.bat does and runs it.
setlocal
set "HEADRACE_INVOKED_AS=%~f0"
for %%I in ("%~dp0..\\..") do set "ROOT=%%~fI"
call "%~dp0environment.bat" "%ROOT%"
if not "%ERRORLEVEL%"=="0" exit /b 1
"%ROOT%\\.venv\\Scripts\\python.exe" -P -m headrace.cli {tool} %*
exit /b %ERRORLEVEL%
"""

_SCRIPTS = re.compile(r"(?<=\[project\.scripts\]\n)(?:[^\n]+\n)*")


def launchers() -> dict[str, str]:
    """Every launcher by its place under bin/: with and without suffix, the misspelt ones, the twins for Windows."""
    found = {}
    for tool in TOOLS:
        found[tool] = found[f"{tool}.sh"] = SHELL.format(tool=tool)
        found[f"windows/{tool}.bat"] = WINDOWS.format(tool=tool).replace("\n", "\r\n")
    for alias, tool in ALIASES.items():
        found[f"{alias}.sh"] = SHELL.format(tool=tool)
    return found


def with_scripts(project: str) -> str:
    """The text of pyproject.toml with one script per tool."""
    lines = [f'{name} = "headrace.cli.main:main"\n' for name in ("headrace", *sorted(TOOLS))]
    return _SCRIPTS.sub("".join(lines), project, count=1)


def main() -> int:
    """Write what is missing or different, remove what leads nowhere, and say so."""
    wanted = launchers()
    binaries = ROOT / "bin"
    for path in [*binaries.iterdir(), *(binaries / "windows").iterdir()]:
        name = path.relative_to(binaries).as_posix()
        if path.is_file() and name not in wanted and path.name not in OURS:
            path.unlink()
            print(f"removed bin/{name}")
    for name, text in wanted.items():
        path = binaries / name
        if not path.exists() or path.read_bytes() != text.encode():
            path.write_bytes(text.encode())
            print(f"wrote bin/{name}")
        path.chmod(0o644 if path.suffix == ".bat" else 0o755)
    project = ROOT / "pyproject.toml"
    before = project.read_text()
    if (after := with_scripts(before)) != before:
        project.write_text(after)
        print("wrote the scripts of pyproject.toml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
