"""A run of faults under load: clients at work, a broker that dies and comes back, and the account at the end."""

import random

from crash.load import Acks, Client, Follower, IdempotentProducer, PlainProducer
from crash.log_reader import Memory, Place, records_of
from crash.victim import Victim
from headrace.testing.history import Outcome, Payload, Poll, Send, check
from wire_client import WireClient

SEGMENT_BYTES = 48 * 1024
"""Small, so that rolls, and what dies in the middle of one, are part of every run."""

REREAD_BATCHES = 500
"""So many of the latest batches, at most, are read again after each restart; all of them at the end."""


class Storm:
    """Clients on some partitions, and what they and we have seen of them."""

    def __init__(self, broker: Victim, chance: random.Random, topics: dict[str, int]) -> None:
        self.broker = broker
        self.chance = chance
        self.places: list[Place] = [(topic, index) for topic, count in topics.items() for index in range(count)]
        self.acks = Acks()
        self.memory = Memory(self.places)
        self.polls: list[Poll] = []
        port = broker.port
        self.idempotent = [
            IdempotentProducer(f"idempotent-{i}", port, self.places, self._luck(), self.acks) for i in range(2)
        ]
        self.plain = PlainProducer("plain", port, self.places, self._luck(), self.acks)
        self.follower = Follower("follower", port, self.places, self._luck())
        self.clients: list[Client] = [*self.idempotent, self.plain, self.follower]

    def _luck(self) -> random.Random:
        return random.Random(self.chance.random())

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, kind, error, trace):
        for client in self.clients:
            client.ending.set()
        for client in self.clients:
            client.join()

    def compare_some(self) -> None:
        """Read again, after a restart, a part of what was seen before, and all that is new."""
        with WireClient(self.broker.port) as client:
            for place in self.places:
                self._compare(client, place, self.memory.boundary(place, self.chance.randrange(1, REREAD_BATCHES)))

    def settle(self) -> None:
        """Let the clients finish what they have begun, and read everything from the start."""
        for client in self.clients:
            client.end()
        with WireClient(self.broker.port) as client:
            for place in self.places:
                self._compare(client, place, 0)

    def _compare(self, client: WireClient, place: Place, offset: int) -> None:
        for batch in self.memory.compare(client, place, offset):
            for record in records_of(batch):
                self.polls.append(Poll("auditor", *place, record.offset, Payload.decode(record.value)))

    @property
    def sends(self) -> list[Send]:
        """What every producer was told."""
        return [send for client in (*self.idempotent, self.plain) for send in client.sends]

    def account(self) -> str:
        """Assert that every promise was kept; the figures of the run."""
        polls = self.polls + self.follower.polls
        violations = check(self.sends, polls, idempotent={client.name for client in self.idempotent}, dense=True)
        assert violations == [], violations[:10]
        acked = sum(send.outcome is Outcome.OK for send in self.sends)
        return f"{acked} acked records, {len(self.polls)} in the logs, {len(self.follower.polls)} followed"
