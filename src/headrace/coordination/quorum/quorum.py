"""This node's part in the quorum, as the rest of the node sees it.

    quorum.on_commit = ...            # what to do with committed records; may be set when the node is ready for them
    await quorum.start()              # a quorum of one leads when this returns
    await quorum.caught_up()          # the image has what the leader had
    async with quorum.turn: ...       # the image stands still
    await quorum.run(command)         # on the active controller only

A log that fails to flush ends all of it: what was appended may or may not survive, and only a restart can tell.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.coordination.quorum import describe_messages
from headrace.coordination.quorum.active_controller import ActiveController
from headrace.coordination.quorum.applier import Applier
from headrace.coordination.quorum.driver import Driver
from headrace.coordination.quorum.effects import Effects, Question
from headrace.coordination.quorum.metadata_log import Decision, MetadataLog
from headrace.coordination.quorum.opening import Opened, open_replica
from headrace.coordination.quorum.peers import Peers
from headrace.coordination.quorum.snapshot_file import SnapshotFiles
from headrace.coordination.quorum.snapshotting import Snapshotting
from headrace.coordination.quorum.wire_terms import listening_at
from headrace.cores.raft import inputs as given
from headrace.cores.raft import outputs as told
from headrace.cores.raft.raft import Raft
from headrace.cores.raft.voters import NOBODY
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.net.link import LinkBroken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import Executor
    from random import Random

    from headrace.coordination.quorum.settings import QuorumSettings
    from headrace.cores.controller import Command
    from headrace.cores.metadata import Metadata
    from headrace.cores.raft.messages import Request, Response
    from headrace.cores.raft.voters import Endpoint, Endpoints
    from headrace.model.metadata_records import MetadataRecord
    from headrace.storage.log import Log
    from headrace.storage.log_dir import LogDir

logger = logging.getLogger(__name__)

Reply = TypeVar("Reply")


class Quorum:
    """One replica of the metadata log, voter or observer."""

    def __init__(
        self,
        log: Log,
        metadata: Metadata,
        *,
        log_dir: LogDir,
        settings: QuorumSettings,
        executor: Executor,
        clock: Callable[[], int],
        chance: Random,
    ) -> None:
        self.settings = settings
        self.on_leadership: Callable[[bool], None] = lambda is_active: None
        self.on_leader: Callable[[], None] = lambda: None
        """Told whenever another leader is known than before."""
        self.on_fault: Callable[[KafkaError], None] = lambda fault: None
        """Told once, when this replica can go on no longer."""
        self._clock = clock
        self._chance = chance
        self._executor = executor
        self._log = MetadataLog(log, log_dir, executor=executor, clock=clock)
        self._files, self._directory = log_dir.files, log.path
        self._snapshots = SnapshotFiles(log_dir.files, log.path)
        self._peers = Peers(settings)
        self._applier = Applier(metadata, self._log, on_fault=self._break, on_applied=self._applied)
        self._on_commit: Callable[[Sequence[MetadataRecord]], Awaitable[None]] | None = None
        self._is_open = False
        """Whether the core takes part; what is asked before and after is refused."""
        self._is_started = False
        self._active: ActiveController | None = None
        self._fault: KafkaError | None = None
        self._leader: tuple[int, int, Endpoints] = (NOBODY, 0, ())
        self._questions: dict[Question, None] = {}
        self._changed = asyncio.Event()
        """Set whenever something happened that those who wait for the leader should look at."""
        self._stopped: asyncio.Future[None] | None = None
        self._raft: Raft
        self._driver: Driver
        self._effects: Effects
        self._snapshotting: Snapshotting

    # --- what the node looks at

    @property
    def metadata(self) -> Metadata:
        """The committed image."""
        return self._applier.metadata

    @property
    def turn(self) -> asyncio.Lock:
        """Whoever holds it sees an image that stands still."""
        return self._applier.turn

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller and may decide."""
        return self._active is not None

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the quorum, though it may not be ready to decide."""
        return self._is_open and self._raft.is_leader

    @property
    def leader_id(self) -> int:
        """The leader of the quorum, -1 if it is unknown."""
        return self._leader[0]

    @property
    def leader_epoch(self) -> int:
        """The highest epoch heard of."""
        return self._leader[1]

    def leader_endpoint(self) -> Endpoint | None:
        """Where the leader's controller listens, if that is known."""
        return listening_at(self._leader[2], self.settings.listener)

    @property
    def next_offset(self) -> int:
        """The offset the next record will have; of use to a command while it decides."""
        return self._log.end_offset

    @property
    def applied_offset(self) -> int:
        """How far the image is: everything below is in it."""
        return self._applier.position.offset

    @property
    def fault(self) -> KafkaError | None:
        """Why this replica takes part no longer; None while it does."""
        return self._fault

    @property
    def on_commit(self) -> Callable[[Sequence[MetadataRecord]], Awaitable[None]] | None:
        """Called with each committed batch's records, in order, once the image has them; nothing start replayed."""
        return self._on_commit

    @on_commit.setter
    def on_commit(self, callback: Callable[[Sequence[MetadataRecord]], Awaitable[None]] | None) -> None:
        self._on_commit = callback
        if self._is_started:
            self._applier.on_commit = callback

    @property
    def is_elsewhere(self) -> bool:
        """Whether no leader is known, and a controller said that it is of another cluster."""
        return self.leader_id < 0 and bool(self._effects.elsewhere)

    def time_of_day(self, core_ms: int) -> int:
        """The wall clock at a time of the core's clock, which is another."""
        return self._clock() - (self._driver.now_ms() - core_ms)

    # --- life

    async def start(self) -> None:
        """Open the replica and take part; a quorum of one leads when this returns, and has replayed everything."""
        opened = await asyncio.get_running_loop().run_in_executor(
            self._executor,
            lambda: open_replica(
                self._files,
                self._directory,
                log=self._log,
                snapshots=self._snapshots,
                applier=self._applier,
                static_voters=self.settings.static_voters,
            ),
        )
        self._assemble(opened)
        self._leader = (self._raft.leader_id, self._raft.epoch, self._raft.replica.leader_endpoints)
        self._is_open = True
        self._applier.start()
        self._driver.start()
        voters = opened.mirror.voters.last
        if len(voters) == 1 and voters.has(self.settings.key):
            await self._until(lambda: self.is_active)
        self._is_started = True
        self._applier.on_commit = self._on_commit
        self._snapshotting.consider()

    def _assemble(self, opened: Opened) -> None:
        """Put the core together with what it found on disk, and around it what acts for it."""
        settings = self.settings
        self._raft = Raft(
            key=settings.key,
            config=settings.core,
            log=opened.mirror,
            state=opened.state,
            chance=self._chance.randint,
            now_ms=int(asyncio.get_running_loop().time() * 1000),
        )
        self._effects = Effects(
            files=self._files,
            directory=self._directory,
            log=self._log,
            snapshots=self._snapshots,
            peers=self._peers,
            applier=self._applier,
            executor=self._executor,
            fetch_bytes_max=settings.fetch_bytes_max,
            feed=self._feed,
            on_fault=self._break,
        )
        self._snapshotting = Snapshotting(
            applier=self._applier,
            log=self._log,
            snapshots=self._snapshots,
            policy=settings.snapshots,
            executor=self._executor,
            clock=self._clock,
            voters_at=opened.mirror.voters.at,
            feed=self._feed,
        )
        self._driver = Driver(self._raft, {**self._effects.acts(), **self._acts()}, on_fault=self._break)

    async def stop(self) -> None:
        """Hand over if this node leads, then take part no longer; the log is left to its owner to close."""
        if self._is_open:
            self._stopped = asyncio.get_running_loop().create_future()
            self._feed(given.Shutdown(self.settings.stop_timeout_ms))
            await asyncio.wait({self._stopped}, timeout=self.settings.stop_timeout_ms / 1000 + 1)
        self._end(KafkaError(ErrorCode.NOT_CONTROLLER, "The node is stopping."))
        await self._driver.ended()
        await self._log.quiet()

    def abandon(self) -> None:
        """Take part no longer, without a word to anybody and without finishing anything, as a crash would."""
        self._end(KafkaError(ErrorCode.NOT_CONTROLLER, "The node is stopping."))
        self._driver.cancel()
        self._log.cancel()

    def _end(self, reason: KafkaError) -> None:
        self._fault = self._fault or reason
        if not self._is_open:
            return
        self._is_open = False
        self._driver.stop()
        self._lose_leadership(reason)
        self._effects.stop()
        self._snapshotting.stop()
        self._applier.stop()
        self._peers.close()
        for question in tuple(self._questions):
            question.refuse(reason)
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)
        self._changed.set()

    def _break(self, fault: StorageFault) -> None:
        """The disk failed, or the core found that something must not be: this replica must not go on."""
        if self._fault is None:
            logger.critical("quorum_broken node=%d reason=%s", self.settings.key.id, fault)
            error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {fault}")
            self._end(error)
            self.on_fault(error)

    # --- deciding

    async def run(self, command: Command[Reply]) -> Reply:
        """Take one decision against the state as it is now, and give its reply when it is committed and taken over."""
        if not self._is_open:
            raise self._refusal()
        await self._driver.idle()
        active = self._active
        if active is None:
            raise self._refusal()
        try:
            reply, decision = active.decide(command)
        except StorageFault as fault:
            self._break(fault)
            raise self._refusal() from fault
        if decision is None:
            await self._earlier_decisions(active)
            return reply
        await self._propose(active, decision)
        return reply

    async def _earlier_decisions(self, active: ActiveController) -> None:
        """Wait until everything is committed that a reply without records may speak of."""
        if active.last is not None and not active.last.done():
            await asyncio.wait({active.last})
            if self._active is not active:
                raise self._refusal()

    def _refusal(self) -> KafkaError:
        if self._fault is not None:
            # A new one each time: an exception that is raised again remembers every place it was raised at.
            return KafkaError(self._fault.code, self._fault.message)
        return KafkaError(ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")

    async def finish(self) -> None:
        """Have the node take over what it could not when it was committed; StorageFault if it still cannot."""
        await self._applier.finish()

    async def caught_up(self) -> None:
        """Wait until the image has reached what the leader had committed when asked."""
        while True:
            target = await self._leader_position()
            if target is not None:
                try:
                    async with asyncio.timeout(self.settings.core.request_timeout_ms / 1000):
                        await self._applier.reached(target)
                except TimeoutError:
                    continue
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(self.settings.core.retry_backoff_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _leader_position(self) -> int | None:
        """How much is committed by the leader's word; None if it cannot be asked now."""
        if self._fault is not None:
            raise self._refusal()
        if self.is_active:
            return self._log.end_offset
        leader_id, _, endpoints = self._leader
        if leader_id < 0 or leader_id == self.settings.key.id:
            return None
        try:
            message = await self._peers.describe(leader_id, endpoints, describe_messages.request_to_wire())
        except LinkBroken:
            return None
        return describe_messages.high_watermark_of(message)

    async def is_deserted(self) -> bool:
        """Whether so few of those who vote accept connections that nothing can be decided now."""
        voters = self._raft.replica.log.voters.last
        others = [voter.endpoints for voter in voters.by_id.values() if voter.key.id != self.settings.key.id]
        there = await asyncio.gather(*map(self._peers.is_there, others))
        return sum(there) + voters.has(self.settings.key) < voters.majority

    async def snapshot(self) -> None:
        """Write a snapshot of what is committed now, whether it is due or not."""
        await self._snapshotting.write()

    # --- what other nodes ask

    async def handle(self, request: Request) -> Response:
        """Answer a request of another node; the answer to a fetch may take its time."""
        if not self._is_open:
            raise self._refusal()
        question = Question(request, asyncio.get_running_loop().create_future())
        self._questions[question] = None
        try:
            self._driver.feed(given.Received(question, request))
            return await question.answer
        finally:
            self._questions.pop(question, None)

    def _feed(self, given_input: given.Input, *, first: bool = False) -> None:
        self._driver.feed(given_input, first=first)

    # --- what the core tells

    def _acts(self) -> dict[type[Any], Callable[[Any], None]]:
        return {
            told.AnswerProposal: self._proposed,
            told.HighWatermarkMoved: self._high_watermark_moved,
            told.LeaderKnown: self._leader_known,
            told.BecameLeader: self._became_leader,
            told.LeadershipReady: self._leadership_ready,
            told.LeadershipLost: self._leadership_lost,
            told.ShutdownComplete: self._shutdown_complete,
            told.Halt: self._halt,
        }

    def _proposed(self, answer: told.AnswerProposal) -> None:
        if answer.proposed.error is not ErrorCode.NONE:
            raise StorageFault("The core refused what is in the log already.")

    def _high_watermark_moved(self, moved: told.HighWatermarkMoved) -> None:
        self._log.committed(moved.offset)
        self._applier.committed(moved.offset)

    def _leader_known(self, known: told.LeaderKnown) -> None:
        logger.info("quorum_leader node=%d leader=%d epoch=%d", self.settings.key.id, known.leader_id, known.epoch)
        self._leader = (known.leader_id, known.epoch, known.endpoints)
        self._changed.set()
        if known.leader_id >= 0:
            self.on_leader()

    def _became_leader(self, became: told.BecameLeader) -> None:
        logger.info("quorum_elected node=%d epoch=%d", self.settings.key.id, became.epoch)

    def _leadership_ready(self, ready: told.LeadershipReady) -> None:
        self._effects.spawn(self._lead(ready.epoch, self._raft.high_watermark))

    async def _lead(self, epoch: int, committed: int) -> None:
        """Begin to decide, once the image has everything that earlier leaders decided."""
        await self._applier.reached(committed)
        async with self.turn:
            ahead = await asyncio.get_running_loop().run_in_executor(self._executor, self.metadata.copy)
            is_in_transaction = self._applier.transaction.is_open
        if is_in_transaction:
            await self._driver.idle()
        if self._raft.is_leader and self._raft.epoch == epoch and self._fault is None:
            active = ActiveController(ahead, epoch, self._log)
            if is_in_transaction and not self._abort_transaction(active):
                return
            self._active = active
            self._changed.set()
            self._tell_leadership(is_active=True)

    def _abort_transaction(self, active: ActiveController) -> bool:
        logger.warning("metadata_transaction_aborted node=%d epoch=%d", self.settings.key.id, active.epoch)
        try:
            decision = active.abort_transaction()
        except KafkaError as error:
            self._break(StorageFault(f"A transaction cannot be aborted: {error}"))
            return False
        self._propose(active, decision)
        return True

    def _propose(self, active: ActiveController, decision: Decision) -> asyncio.Future[None]:
        """Have the quorum commit what was decided and written; the future ends when it is taken over."""
        active.last = done = self._applier.decided(decision)
        self._driver.feed(given.Propose(None, active.epoch, len(decision.records)))
        return done

    def _leadership_lost(self, lost: told.LeadershipLost) -> None:
        logger.info("quorum_leadership_lost node=%d epoch=%d", self.settings.key.id, lost.epoch)
        self._lose_leadership(KafkaError(ErrorCode.NOT_CONTROLLER, "The active controller appears to be another node."))

    def _lose_leadership(self, reason: KafkaError) -> None:
        was_active, self._active = self._active is not None, None
        self._applier.forget_decisions(reason)
        self._changed.set()
        if was_active:
            self._tell_leadership(is_active=False)

    def _tell_leadership(self, *, is_active: bool) -> None:
        try:
            self.on_leadership(is_active)
        except Exception:
            # What the node makes of it must not harm the quorum.
            logger.exception("leadership_not_taken_over is_active=%s", is_active)

    def _shutdown_complete(self, complete: told.ShutdownComplete) -> None:
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

    def _halt(self, halt: told.Halt) -> None:
        raise StorageFault(halt.reason)

    def _applied(self) -> None:
        if self._is_started:
            self._snapshotting.consider()

    async def _until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            if self._fault is not None:
                raise self._refusal()
            self._changed.clear()
            await self._changed.wait()
