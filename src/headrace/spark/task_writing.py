"""How one task writes its rows: at least once, or in a transaction that somebody else will end."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.model.errors import HeadraceError, KafkaError
from headrace.spark.decision import NOTHING, Part
from headrace.spark.exactly_once import abandon
from headrace.spark.fingerprint import Fingerprint
from headrace.spark.links import links_to
from headrace.spark.producer_identity import Identity
from headrace.spark.producing import Producing, blocks
from headrace.spark.sending import refusal
from headrace.spark.transactions import Coordinators

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.client.options import ConnectionOptions
    from headrace.spark.exactly_once import TaskSide
    from headrace.spark.option_table import SinkOptions
    from headrace.spark.outbox import Place
    from headrace.spark.producer_settings import ProducerSettings
    from headrace.spark.sink_columns import SinkColumns

SEQUENCE_MAX = 2**30
"""Beyond this a new identity is taken, long before numbers begin again at 0."""

_REMEMBERED: dict[tuple[int, ConnectionOptions], tuple[Identity, dict[Place, int]]] = {}
"""Who this process is to a cluster, and how far its numbers are: a new identity per task would fill brokers' memory."""


class TaskWriting:
    """Writes the rows of one task."""

    def __init__(self, options: SinkOptions, settings: ProducerSettings, columns: SinkColumns, *, task: int) -> None:
        self._options = options
        self._settings = settings
        self._columns = columns
        self._task = task
        self._key = (os.getpid(), options.connection)
        self._links = links_to(options.connection)
        self._coordinators = Coordinators(self._links, settings)

    def at_least_once(self, batches: Iterator[pa.RecordBatch]) -> int:
        """Write the rows; how many there were."""
        gathered = blocks(batches)
        first = next(gathered, None)
        if first is None:
            return 0
        # What is remembered is true again only when everything was accepted.
        known = _REMEMBERED.pop(self._key, None)
        if known is None or max(known[1].values(), default=0) > SEQUENCE_MAX or not self._settings.is_idempotent:
            known = (self._identify(), {})
        producing = self._producing(*known)
        for block in itertools.chain((first,), gathered):
            producing.write(block)
        producing.finish()
        if self._settings.is_idempotent:
            _REMEMBERED[self._key] = known
        return producing.rows

    def in_transaction(self, batches: Iterator[pa.RecordBatch], identity: Identity) -> tuple[int, Part]:
        """Write the rows in a transaction that is left open; how many there were, and who may end it."""
        gathered = blocks(batches)
        first = next(gathered, None)
        if first is None:
            return 0, NOTHING
        producing = self._producing(identity, {})
        try:
            for block in itertools.chain((first,), gathered):
                producing.write(block)
            producing.finish()
        except BaseException as error:
            producing.give_up()
            abandon(self._coordinators, identity)
            if isinstance(error, KafkaError):
                raise refusal(f"The transaction of task {self._task} was refused", error.code) from error
            raise
        return producing.rows, _part(identity, producing.fingerprint)

    def exactly_once(self, batches: Iterator[pa.RecordBatch], side: TaskSide) -> tuple[int, Part]:
        """Write a stream's rows; without any there is no transaction."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            side.check(Fingerprint().number)
            return 0, NOTHING
        identity = side.take_up()
        rows, part = self.in_transaction(itertools.chain((first,), batches), identity)
        try:
            side.check(part.fingerprint)
        except HeadraceError:
            abandon(self._coordinators, identity)
            raise
        return rows, part

    def _producing(self, identity: Identity, sequences: dict[Place, int]) -> Producing:
        self._links.clear_lanes()
        in_transaction = identity.transactional_id is not None
        return Producing(
            self._links,
            self._settings,
            columns=self._columns,
            topic=self._options.topic,
            identity=identity,
            sequences=sequences,
            turn=self._task,
            admit=(lambda places: self._coordinators.add_partitions(identity, places)) if in_transaction else None,
        )

    def _identify(self) -> Identity:
        if not self._settings.is_idempotent:
            return Identity()
        try:
            return self._coordinators.identify(None)
        except KafkaError as error:
            raise refusal("No producer id was given", error.code) from error


def _part(identity: Identity, fingerprint: Fingerprint) -> Part:
    return Part(producer_id=identity.producer_id, epoch=identity.epoch, fingerprint=fingerprint.number)
