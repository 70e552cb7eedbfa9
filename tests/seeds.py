"""Where a test's luck comes from: one seed, printed, so that a run that failed can be had again."""

import os
import random

VARIABLE = "HEADRACE_SEED"
EVERYDAY_SEED = 1


def chance_for(name: str, *, campaign: bool) -> random.Random:
    """The luck of one test: the seed that was asked for, the same one every day, or a new one in a campaign."""
    asked = os.environ.get(VARIABLE)
    seed = int(asked) if asked else random.SystemRandom().randrange(10**9) if campaign else EVERYDAY_SEED
    print(f"{name}: again with {VARIABLE}={seed}")
    return random.Random(f"{seed} {name}")
