"""The processes of a run as the kernel knows them."""

from pathlib import Path


def descendants(pid):
    """All processes below one."""
    below = _children()
    found, queue = [], [pid]
    while queue:
        nearest = below.get(queue.pop(), [])
        found += nearest
        queue += nearest
    return found


def _children():
    below = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        below.setdefault(int(text[text.rindex(")") + 2 :].split()[1]), []).append(int(path.parent.name))
    return below


def command_of(pid):
    """What a process was started with."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def is_alive(pid):
    """Whether a process runs, and does not only wait to be buried."""
    return Path(f"/proc/{pid}").exists() and ") Z" not in Path(f"/proc/{pid}/stat").read_text()
