"""A broker in the simulation of replication: the real cores, with a simulated disk, network and clock around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.replication.epochs import check_leader_epoch
from headrace.cores.replication.follower import StartOver, Truncate, Verdict
from headrace.cores.replication.messages import AlterAnswer, FetchAnswer, FetchPosition, LeaderRange
from headrace.cores.replication.read_replica import THE_LEADER, preferred_read_replica
from headrace.cores.replication.replica import Change, Replica
from headrace.model.errors import ErrorCode, KafkaError
from headrace.sim.replication_log import Record, SimulatedLog, spell
from headrace.sim.replication_process import SimulatedProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.cores.replication.follower import Action
    from headrace.cores.replication.leader import Leader
    from headrace.cores.replication.messages import AlterPartition
    from headrace.sim.replication import World
    from headrace.sim.replication_controller import SimulatedPartition, SimulatedRegistration

CONTROLLER = 0
FETCH_TIMEOUT_MS = 150
ALTER_TIMEOUT_MS = 250
RECORDS_PER_CONSUMER_FETCH = 6
QUESTIONS_KEPT = 8
"""How many fetches a broker remembers, so that late answers reach the core and are judged there."""
SHUTDOWN_PATIENCE_MS = 500


class SimulatedBroker(SimulatedProcess):
    """One broker with one replica of the partition; its log and its checkpoints survive it."""

    def __init__(self, world: World, broker_id: int, rack: str) -> None:
        super().__init__(world.scheduler)
        self._world = world
        self._chance = world.scheduler.chance
        self.broker_id = broker_id
        self.rack = rack
        # On the disk
        self.log = SimulatedLog()
        self.checkpoint = 0
        self.clean_epoch = -1
        """The broker epoch it was shut down cleanly with, -1 if it was not."""
        self.has_lost_data = False
        """Whether it lost unflushed records and the controller does not know yet."""
        # In memory
        self.broker_epoch = -1
        self.applied = 0
        self.view: dict[int, SimulatedRegistration] = {}
        self.partition: SimulatedPartition | None = None
        self.replica: Replica | None = None
        self._wants_shutdown = False
        self._questions: dict[int, FetchPosition] = {}
        self._fetch_number = 0
        self._alter_number = 0
        self._is_flushing = False
        self._waits_for_flush = False
        self._waiters: list[tuple[int, int, int, int]] = []
        # Faults
        self.clock_skew_ms = 0
        self.metadata_delay_ms = 0
        self.flush_ms = (1, 6)

    # --- life

    @property
    def now_ms(self) -> int:
        """This broker's own clock."""
        return self._world.scheduler.now_ms + self.clock_skew_ms

    def start(self) -> None:
        """Start the process: everything in memory begins anew."""
        self._begin_life()
        self.broker_epoch = -1
        self.applied = 0
        self.view = {}
        self.partition = None
        self.replica = None
        self._wants_shutdown = self._is_flushing = self._waits_for_flush = False
        self._questions = {}
        self._waiters = []
        self._say("starts")
        self._beat()
        self._keep_house()

    def crash(self, *, loses_page_cache: bool) -> None:
        """Kill the process, or cut its power."""
        self.is_up = False
        self.clean_epoch = -1
        end_offset = self.log.log_end_offset
        self.log.crash(self._chance, loses_page_cache=loses_page_cache)
        self.has_lost_data = self.has_lost_data or self.log.log_end_offset < end_offset
        self._world.checker.cut(self)
        self._say(f"crashes, {'power lost' if loses_page_cache else 'killed'}, end {end_offset}->{self._end}")

    def shut_down(self) -> None:
        """Ask the controller to be let go, then stop cleanly."""
        if self.is_up and not self._wants_shutdown:
            self._say("wants to shut down")
            self._wants_shutdown = True
            self._after(SHUTDOWN_PATIENCE_MS, self._stop)

    def _stop(self) -> None:
        self.log.recovery_point = self.log.log_end_offset
        self._note_high_watermark()
        self.clean_epoch = self.broker_epoch
        self.log.crash(self._chance, loses_page_cache=False)
        self.is_up = False
        self._say("stops cleanly")

    def _handle(self, sender: int, message: tuple[Any, ...]) -> None:
        self._HANDLERS[message[0]](self, sender, *message[1:])

    def _send(self, receiver: int, *message: Any) -> None:
        self._world.network.send(self.broker_id, receiver, message)

    def _say(self, what: str) -> None:
        self._world.say(f"{self.broker_id} {what}")

    @property
    def _end(self) -> int:
        return self.log.log_end_offset

    # --- the controller

    def _beat(self) -> None:
        """Register until that is done, then say that we live."""
        if self.broker_epoch < 0:
            self._send(CONTROLLER, "register", self.incarnation, self.clean_epoch)
        else:
            self._send(CONTROLLER, "heartbeat", self.broker_epoch, self.applied, self._wants_shutdown)
        self._after(self._world.heartbeat_ms, self._beat)

    def _on_registered(self, sender: int, incarnation: int, epoch: int) -> None:
        if incarnation == self.incarnation and self.broker_epoch < 0:
            self.broker_epoch = epoch
            self.clean_epoch = -1

    def _on_metadata(self, sender: int, count: int) -> None:
        """Metadata up to a point is here; it may take a while to be acted on."""
        if self.metadata_delay_ms:
            self._after(self.metadata_delay_ms, lambda: self._apply(count))
        else:
            self._apply(count)

    def _apply(self, count: int) -> None:
        """Act on the metadata, one decision after the other; before our registration is in it, only look."""
        for update in self._world.controller.log[self.applied : count]:
            self.applied += 1
            if update.partition is not None:
                self.partition = update.partition
                self._take_over()
            elif update.registration is not None:
                self.view[update.broker_id] = update.registration
                if update.broker_id == self.broker_id and update.registration.broker_epoch == self.broker_epoch:
                    self._take_over()

    def _take_over(self) -> None:
        """Play the part the metadata gives us."""
        own = self.view.get(self.broker_id)
        if self.partition is None or self.broker_epoch < 0 or own is None or own.broker_epoch != self.broker_epoch:
            return
        self.has_lost_data = False
        if self.replica is None:
            self.replica = Replica(
                self.log,
                broker_id=self.broker_id,
                broker_epoch=self.broker_epoch,
                brokers=self.view,
                settings=self._world.settings,
                high_watermark=self.checkpoint,
            )
        change = self.replica.update(self.partition, self.now_ms)
        if change in {Change.BECAME_LEADER, Change.NEW_EPOCH}:
            self._lead(change)
        elif change is Change.BECAME_FOLLOWER:
            self._follow()
        self._settle()

    def _lead(self, change: Change) -> None:
        leader = self._leader()
        assert leader is not None
        self.log.assign_epoch(leader.leader_epoch, leader.epoch_start_offset)
        self._say(f"{change.value} of epoch {leader.leader_epoch} at {self._end}, hw {leader.high_watermark}")
        self._flush()

    def _follow(self) -> None:
        assert self.replica is not None
        follower = self.replica.follower
        assert follower is not None
        self.log.truncate_to(self._end)
        self._say(f"follows {follower.leader} in epoch {follower.leader_epoch}, end {self._end}")
        waiters, self._waiters = self._waiters, []
        for _, client, number, sequence in waiters:
            self._send(client, "produced", number, sequence, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        self._fetch()

    def _leader(self) -> Leader | None:
        return None if self.replica is None else self.replica.leader

    def _keep_house(self) -> None:
        """What is done every now and then."""
        leader = self._leader()
        if leader is not None:
            leader.tick(self.now_ms)
            self._settle()
        if self._chance.random() < 0.5:
            self._note_high_watermark()
        if self._chance.random() < 0.3:
            self._flush()
        self._after(self._chance.randint(60, 140), self._keep_house)

    def _note_high_watermark(self) -> None:
        if self.replica is not None:
            self.checkpoint = self.replica.high_watermark

    def _settle(self) -> None:
        """After anything that may have moved the high watermark or asked for another ISR."""
        self._world.checker.touch(self)
        leader = self._leader()
        if leader is None:
            return
        request = leader.take_request()
        if request is not None:
            self._alter(request)
        if self._waiters:
            self._answer_producers(leader)

    def _alter(self, request: AlterPartition) -> None:
        self._alter_number += 1
        number = self._alter_number
        self._say(f"asks for isr {request.isr} v{request.partition_epoch}")
        self._world.to_controller(self.broker_id, ("alter", number, self.broker_epoch, request))
        timeout = AlterAnswer(error=ErrorCode.REQUEST_TIMED_OUT)
        self._after(ALTER_TIMEOUT_MS, lambda: self._on_altered(CONTROLLER, number, request, timeout))

    def _on_altered(self, sender: int, number: int, request: AlterPartition, answer: AlterAnswer) -> None:
        leader = self._leader()
        if leader is not None and number == self._alter_number:
            self._alter_number += 1
            leader.answered(request, answer, self.now_ms)
            self._settle()

    # --- the disk

    def _flush(self) -> None:
        """Flush what there is, once the flush under way is done."""
        if self._is_flushing or self.log.recovery_point == self._end:
            return
        self._is_flushing = True
        end_offset, generation = self._end, self.log.generation
        self._after(self._chance.randint(*self.flush_ms), lambda: self._flushed(end_offset, generation))

    def _flushed(self, end_offset: int, generation: int) -> None:
        self._is_flushing = False
        self.log.flushed(end_offset, generation)
        leader = self._leader()
        if leader is not None:
            leader.flushed(self.now_ms)
            self._settle()
        if self._world.settings.flushes:
            self._flush()
        if self._waits_for_flush:
            self._fetch()

    def write(self, record: Record) -> int:
        """Append a record and have it checked."""
        self._world.checker.written(self, record)
        return self.log.append(record)

    # --- following

    def _fetch(self) -> None:
        """Ask the leader for what comes next; a question that stays open is asked again."""
        follower = None if self.replica is None else self.replica.follower
        if follower is None:
            return
        self._fetch_number += 1
        number = self._fetch_number
        position = follower.ask()
        self._waits_for_flush = position is None and follower.must_flush
        if position is None:
            self._flush()
            return
        self._questions[number] = position
        self._questions.pop(number - QUESTIONS_KEPT, None)
        self._send(follower.leader, "fetch", number, self.broker_epoch, position)
        self._after(FETCH_TIMEOUT_MS, lambda: self._fetch_if(number))

    def _fetch_if(self, number: int) -> None:
        """Ask, unless something else has been asked since."""
        if number == self._fetch_number:
            self._fetch()

    def _fetch_after(self, delay_ms: int) -> None:
        self._fetch_number += 1
        number = self._fetch_number
        self._after(delay_ms, lambda: self._fetch_if(number))

    def _on_fetched(self, sender: int, number: int, answer: FetchAnswer, records: list[Record]) -> None:
        position = self._questions.get(number)
        follower = None if self.replica is None else self.replica.follower
        if position is None or follower is None:
            return
        action = follower.answered(position, answer)
        if action is Verdict.APPEND:
            self._take_in(answer, records)
        elif action is Verdict.FIND_RANGE:
            self._send(sender, "range", number, position.leader_epoch)
        else:
            self._do(action)

    def _take_in(self, answer: FetchAnswer, records: list[Record]) -> None:
        assert self.replica is not None
        follower = self.replica.follower
        assert follower is not None
        for record in records:
            self.write(record)
        if records:
            self._say(f"appends {spell(records)} end {self._end}")
        follower.appended(answer)
        self.log.advance_start(min(answer.log_start_offset, follower.high_watermark))
        self._world.checker.touch(self)
        if records:
            self._fetch()
        else:
            self._fetch_after(self._chance.randint(8, 25))

    def _on_ranged(self, sender: int, number: int, found: LeaderRange) -> None:
        position = self._questions.get(number)
        follower = None if self.replica is None else self.replica.follower
        if position is not None and follower is not None:
            self._do(follower.found(position, found))

    def _do(self, action: Action) -> None:
        """Carry out what an answer asks for, other than to append."""
        match action:
            case Truncate():
                self._say(f"truncates {self._end}->{action.offset}, lost hw {action.lost_high_watermark}")
                self._world.checker.lost_high_watermark(self, action.lost_high_watermark)
                self.log.truncate_to(action.offset)
                self._world.checker.cut(self)
                self._fetch()
            case StartOver():
                self._say(f"starts over {self._end}->{action.offset}, lost hw {action.lost_high_watermark}")
                self._world.checker.lost_high_watermark(self, action.lost_high_watermark)
                self.log.start_over(action.offset, self._world.checker.committed[: action.offset])
                self._world.checker.cut(self)
                self._fetch()
            case Verdict.RETRY:
                self._fetch_after(self._chance.randint(20, 50))
            case _:
                pass

    # --- leading

    def _on_fetch(self, sender: int, number: int, broker_epoch: int, asked: FetchPosition) -> None:
        """A follower asks."""
        leader = self._leader()
        if leader is None:
            self._send(sender, "fetched", number, FetchAnswer(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), [])
            return
        try:
            diverging = leader.fetch(sender, asked, broker_epoch=broker_epoch, now_ms=self.now_ms)
        except KafkaError as error:
            self._send(sender, "fetched", number, FetchAnswer(error=error.code), [])
            return
        self._settle()
        records: list[Record] = []
        if diverging is None:
            records = self.log.read(asked.offset, min(asked.offset + self._world.records_per_fetch, self._end))
        answer = FetchAnswer(
            diverging=diverging, high_watermark=leader.high_watermark, log_start_offset=self.log.log_start_offset
        )
        self._send(sender, "fetched", number, answer, records)

    def _on_range(self, sender: int, number: int, leader_epoch: int) -> None:
        """A follower asks which offsets we have."""
        leader = self._leader()
        if leader is None:
            return
        try:
            check_leader_epoch(leader_epoch, leader.leader_epoch)
        except KafkaError:
            return
        found = LeaderRange(
            start_offset=self.log.log_start_offset, end_offset=self._end, end_epoch=self.log.epoch_at(self._end)
        )
        self._send(sender, "ranged", number, found)

    def _on_produce(self, sender: int, number: int, sequence: int) -> None:
        """A producer writes with acks=all."""
        leader = self._leader()
        if leader is None:
            self._send(sender, "produced", number, sequence, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        try:
            leader.check_enough_replicas()
        except KafkaError as error:
            self._send(sender, "produced", number, sequence, error.code, -1)
            return
        last = self.log.last_sequence(sender)
        if sequence > last + 1:
            self._send(sender, "produced", number, sequence, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
            return
        if sequence == last + 1:
            record = Record(leader.leader_epoch, sender, sequence)
            offset = self.write(record)
            self._say(f"leads {spell([record])} at {offset}")
            leader.appended(self.now_ms)
            if self._world.settings.flushes:
                self._flush()
        else:
            known = self.log.offset_of(sender, sequence)
            assert known is not None
            offset = known
        self._waiters.append((offset + 1, sender, number, sequence))
        self._settle()

    def _answer_producers(self, leader: Leader) -> None:
        waiting = []
        for waiter in self._waiters:
            outcome = self.outcome(leader, waiter[0])
            if outcome is None:
                waiting.append(waiter)
            else:
                end_offset, client, number, sequence = waiter
                self._send(client, "produced", number, sequence, outcome, end_offset - 1)
                if outcome is ErrorCode.NONE:
                    self._world.checker.acknowledged(end_offset - 1, client, sequence)
        self._waiters = waiting

    def outcome(self, leader: Leader, end_offset: int) -> ErrorCode | None:
        """What to tell a producer that waits for an offset; None if it has to wait."""
        return leader.outcome(end_offset)

    def _on_consume(self, sender: int, number: int, offset: int, rack: str) -> None:
        """A consumer reads; of a follower too, as far as that knows everything to be committed."""
        if self.replica is None or offset < self.log.log_start_offset:
            start = self.log.log_start_offset if self._leader() is not None else -1
            self._send(sender, "consumed", number, offset, [], THE_LEADER, start)
            return
        end_offset = min(self.replica.high_watermark, offset + RECORDS_PER_CONSUMER_FETCH)
        records = self.log.read(offset, end_offset) if offset < end_offset else []
        preferred = THE_LEADER
        leader = self._leader()
        if leader is not None:
            preferred = preferred_read_replica(
                leader,
                leader_id=self.broker_id,
                client_rack=rack,
                fetch_offset=offset,
                racks=self._world.racks,
                now_ms=self.now_ms,
            )
        self._send(sender, "consumed", number, offset, records, preferred, -1)

    def delete_records(self) -> None:
        """Let the log start later, below the high watermark, if we lead."""
        leader = self._leader()
        if self.is_up and leader is not None and leader.high_watermark > self.log.log_start_offset:
            lowest = self._chance.choice((self.log.log_start_offset, leader.high_watermark))
            self.log.advance_start(self._chance.randint(lowest, leader.high_watermark))
            self._say(f"deletes records up to {self.log.log_start_offset}")

    _HANDLERS: dict[str, Callable[..., None]] = {  # noqa: RUF012 - a table
        "registered": _on_registered,
        "metadata": _on_metadata,
        "altered": _on_altered,
        "fetch": _on_fetch,
        "fetched": _on_fetched,
        "range": _on_range,
        "ranged": _on_ranged,
        "produce": _on_produce,
        "consume": _on_consume,
    }
