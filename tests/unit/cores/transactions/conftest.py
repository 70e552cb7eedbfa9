"""A producer's view of a core: ask, get the reply, and after every step the log must tell the same story."""

from itertools import count

import pytest
from msgspec.structs import replace

from headrace.cores.outcome import Outcome
from headrace.cores.transactions import expiry
from headrace.cores.transactions.ending import (
    EndTransaction,
    NeedsProducerId,
    WriteMarkers,
    complete,
    end_transaction,
)
from headrace.cores.transactions.initialization import InitProducerId, init_producer_id
from headrace.cores.transactions.limits import TransactionLimits
from headrace.cores.transactions.partitions import TransactionPartitions, add_partitions, verify_partitions
from headrace.cores.transactions.shard import Transactions
from headrace.cores.transactions.transaction import ProducerIdentity, to_record
from headrace.model.errors import KafkaError

FIRST_PRODUCER_ID = 1000


class Coordinator:
    """A core with its log, its timers, and the markers it has asked for."""

    def __init__(self, **limits):
        self.limits = TransactionLimits(**limits)
        self.core = Transactions(lambda: self.limits)
        self.log = []
        self.effects = []
        self.timers = {}
        self.now_ms = 1_000_000
        self._fresh = count(FIRST_PRODUCER_ID)
        self._tokens = count()

    # --- steps

    def take(self, outcome: Outcome) -> Outcome:
        """What the shell does with an outcome, and the promise that the log is the state."""
        self.log += outcome.records
        self.effects += outcome.effects
        self.timers.update(outcome.timers)
        assert self.replayed().hard_state() == self.core.hard_state()
        return outcome

    def ask(self, step, command):
        """The reply to a step that must answer at once; an error is raised."""
        token = next(self._tokens)
        outcome = self.take(step(self.core, command, token, self.now_ms))
        ((answered, reply),) = outcome.replies
        assert answered == token
        if isinstance(reply, KafkaError):
            raise reply
        return reply

    def replayed(self):
        """A fresh core that has read the log."""
        fresh = Transactions(lambda: self.limits)
        for key, value in self.log:
            fresh.replay(key, value)
        return fresh

    def fail_over(self):
        """Go on with what the log knows."""
        self.core = self.replayed()
        self.effects, self.timers = [], {}
        self.take(self.core.loaded(self.now_ms))

    # --- what producers ask

    def init(self, name="t", *, timeout_ms=60_000, expected=None):
        """A producer comes up; producer ids are there when they are needed."""
        command = InitProducerId(
            transactional_id=name, timeout_ms=timeout_ms, expected=expected and ProducerIdentity(*expected)
        )
        reply = self.ask(init_producer_id, command)
        if isinstance(reply, NeedsProducerId):
            command = InitProducerId(
                transactional_id=name,
                timeout_ms=timeout_ms,
                expected=command.expected,
                fresh_producer_id=next(self._fresh),
            )
            reply = self.ask(init_producer_id, command)
        return reply

    def add(self, identity, *partitions, name="t", version=2):
        """A producer writes to partitions for the first time."""
        return self.ask(add_partitions, self._partitions(identity, partitions, name, version))

    def verify(self, identity, *partitions, name="t"):
        """A partition's leader asks."""
        return self.ask(verify_partitions, self._partitions(identity, partitions, name, 2))

    @staticmethod
    def _partitions(identity, partitions, name, version):
        return TransactionPartitions(
            transactional_id=name,
            producer_id=identity[0],
            producer_epoch=identity[1],
            partitions=frozenset(partitions),
            transaction_version=version,
        )

    def end(self, identity, *, commit, name="t", version=2):
        """A producer ends its transaction; producer ids are there when they are needed."""

        def command(fresh=None):
            return EndTransaction(
                transactional_id=name,
                producer_id=identity[0],
                producer_epoch=identity[1],
                commit=commit,
                transaction_version=version,
                fresh_producer_id=fresh,
            )

        reply = self.ask(end_transaction, command())
        return self.ask(end_transaction, command(next(self._fresh))) if isinstance(reply, NeedsProducerId) else reply

    # --- what the shell does

    def write_markers(self):
        """Write the markers that were asked for and close their transactions; what was written."""
        written = [effect for effect in self.effects if isinstance(effect, WriteMarkers)]
        self.effects = [effect for effect in self.effects if effect not in written]
        for effect in written:
            self.take(complete(self.core, effect, self.now_ms))
        return written

    def abort_late(self, effect):
        """Get the producer id that aborting a late transaction takes."""
        self.take(expiry.abort_late(self.core, effect.transactional_id, next(self._fresh), self.now_ms))

    def at_epoch(self, epoch, *, name="t"):
        """Have a producer that has used up its epochs so far."""
        self.init(name)
        key, value = to_record(replace(self.core.transactions[name], producer_epoch=epoch))
        self.core.replay(key, value)
        self.log.append((key, value))
        return self.core.transactions[name].identity

    @property
    def state(self):
        """Where transactional id "t" stands."""
        return self.core.transactions["t"].state.title


@pytest.fixture
def coordinator():
    """A coordinator of a cluster at transaction version 2."""
    return Coordinator()


@pytest.fixture
def make_coordinator():
    """Coordinators with limits of the test's own."""
    return Coordinator
