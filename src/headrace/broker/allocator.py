"""How the C library gives memory back: by fixed rules instead of ones that it changes as it goes.

Left alone, glibc raises the size from which an allocation gets pages of its own each time such a one is freed, up to
32 MiB. From then on the buffers of huge requests lie in the heap, and one small object above them keeps all of it from
the system: what a broker occupies would depend on the largest request it ever saw.
"""

import ctypes
import sys

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
OWN_PAGES_BYTES = 4 * 1024 * 1024
"""From this size on, freed means given back; smaller allocations are too frequent to pay for that."""
HEAP_SLACK_BYTES = 8 * 1024 * 1024
"""Free memory at the end of the heap that is kept for the next request."""


def fix_thresholds() -> bool:
    """Set them for this process; False where the C library has no such thing."""
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, OWN_PAGES_BYTES) and mallopt(_TRIM_THRESHOLD, HEAP_SLACK_BYTES))
