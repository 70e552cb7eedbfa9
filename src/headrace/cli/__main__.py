"""`python -m headrace.cli`: what the launchers run."""

import sys

from headrace.cli.main import main

sys.exit(main())
