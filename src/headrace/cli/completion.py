"""`headrace completion`: what makes a shell complete our commands, live names of topics and groups included.

The scripts only hand the line up to the cursor back to `headrace completion words`, which prints one candidate per
line. So all knowledge is in `completion_words.py`, in Python, and never out of step with the tools.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from headrace.cli.layout import project_root
from headrace.cli.main import ALIASES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
Print a script that completes commands, options, topics and groups:

  eval "$(headrace completion bash)"            in ~/.bashrc
  eval "$(headrace completion zsh)"             in ~/.zshrc, after compinit
  headrace completion fish | source             in ~/.config/fish/config.fish
"""

BASH = """\
# Completion of Headrace's and Kafka's commands for bash.
_headrace_completion() {{
    local line=${{COMP_LINE:0:COMP_POINT}} word candidate
    word=${{line##*[[:space:]]}}
    COMPREPLY=()
    while IFS= read -r candidate; do
        # Bash takes what follows the last colon for the word; give it only that part.
        [[ $word == *:* ]] && candidate=${{candidate#"${{word%:*}}:"}}
        COMPREPLY+=("$candidate")
    done < <({command} completion words "$line" 2>/dev/null)
}}
complete -o bashdefault -o default -F _headrace_completion {names}
"""

ZSH = """\
# Completion of Headrace's and Kafka's commands for zsh.
_headrace_completion() {{
    local -a candidates
    candidates=("${{(@f)$({command} completion words "${{LBUFFER}}" 2>/dev/null)}}")
    candidates=(${{candidates:#}})
    if (( ${{#candidates}} )); then
        compadd -a candidates
    else
        _files
    fi
}}
compdef _headrace_completion {names}
"""

FISH = """\
# Completion of Headrace's and Kafka's commands for fish.
function __headrace_completion
    set -l candidates ({command} completion words (commandline -cp) 2>/dev/null)
    if test (count $candidates) -gt 0
        printf '%s\\n' $candidates
    else
        __fish_complete_path (commandline -ct)
    end
end
for name in {names}
    complete -c $name -f -a '(__headrace_completion)'
end
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def main(arguments: Sequence[str], program: str) -> int:
    """Print a shell's script, or (for the scripts) what a line can go on with."""
    match list(arguments):
        case ["words", *line]:
            from headrace.cli.completion_words import candidates

            for candidate in candidates(" ".join(line)):
                print(candidate)
            return 0
        case [shell] if shell in SCRIPTS:
            print(SCRIPTS[shell].format(command=shlex.quote(_command()), names=" ".join(_names())), end="")
            return 0
        case ["--help"] | ["-h"] | ["help"]:
            print(USAGE, end="")
            return 0
        case _:
            print(USAGE, end="", file=sys.stderr)
            return 1


def _command() -> str:
    """The umbrella command by a name that works in every directory."""
    root = project_root()
    if root is not None and os.name != "nt":
        return str(root / "bin" / "headrace")
    called = sys.argv[0]
    return os.path.abspath(called) if os.path.basename(called).startswith("headrace") else "headrace"  # noqa: PTH100, PTH119


def _names() -> list[str]:
    """Every name a command of ours is typed by."""
    return ["headrace", *(name for tool in (*TOOLS, *ALIASES) for name in (tool, f"{tool}.sh"))]
