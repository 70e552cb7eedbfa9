"""A coordinator of a broker in this process that has read its log: before, it tells whoever asks to come again."""

import time

from headrace.model.errors import KafkaError

KINDS = ("groups", "transactions", "share_state")
"""By the key type of FindCoordinator: the broker's attribute."""
PATIENCE_S = 30.0


def until_loaded(cluster, kind, key):
    """Wait until a key's coordinator serves; whoever asked for it was answered after a second at the latest."""
    end = time.monotonic() + PATIENCE_S
    while not cluster.ask(lambda broker: _is_loaded(getattr(broker, KINDS[kind]), key)):
        assert time.monotonic() < end, f"the coordinator of {key} does not get ready"


def _is_loaded(coordinator, key):
    try:
        coordinator.shard_for(key)
    except KafkaError:
        return False
    return True
