"""The modules of the truck fleet lie beside each other and import each other by name, as a pipeline's modules do."""

import sys
from pathlib import Path

TRUCKS = str(Path(__file__).parents[3] / "examples/trucks")

if TRUCKS not in sys.path:
    sys.path.append(TRUCKS)
