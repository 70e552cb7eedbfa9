"""A replica of the quorum in virtual time: the core, and the simplest shell that keeps its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cores.raft import inputs as given
from headrace.cores.raft import outputs as wanted
from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.log_mirror import OffsetAndEpoch
from headrace.cores.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotResponse,
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    Response,
    VoteRequest,
    VoteResponse,
)
from headrace.cores.raft.raft import Raft
from headrace.cores.raft.replica import BOOTSTRAP_FIRST
from headrace.cores.raft.voters import ReplicaKey
from headrace.sim.quorum_disk import Entry, QuorumDisk, Snapshot
from headrace.sim.quorum_invariants import Violation, next_state
from headrace.sim.scheduler import Timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.sim.quorum import QuorumWorld

PIECE = 2
"""How much of a snapshot is sent at once."""


class Asked:
    """Who asked something, and what; the token of a request."""

    __slots__ = ("alias", "correlation", "request", "sender")

    def __init__(self, sender: int, alias: int, correlation: int, request: Any) -> None:
        self.sender = sender
        self.alias = alias
        """How the sender calls this node: bootstrap servers have other numbers."""
        self.correlation = correlation
        self.request = request


class Crash(Exception):
    """The node has died between two outputs."""


class QuorumNode:
    """One node: dead or alive, with a disk that survives it."""

    def __init__(self, world: QuorumWorld, key: ReplicaKey, disk: QuorumDisk, config: QuorumConfig) -> None:
        self.world = world
        self.key = key
        self.id = key.id
        self.disk = disk
        self.config = config
        self.raft: Raft | None = None
        self.stopping = False
        self.clock_ms = world.scheduler.chance.randint(0, 10_000)
        """How far this node's clock is ahead; it may jump, but only forward."""
        self.paused_until = 0
        self.dies_after: int | None = None
        """How many more outputs it carries out before it dies."""
        self.applied = 0
        self.state = 0
        self.life = 0
        self._wake: Timer | None = None
        self._wake_at = self._wake_then = 0
        self._flush: tuple[int, int] | None = None
        self._flush_next: tuple[int, int] | None = None
        self._loaded: given.SnapshotLoaded | None = None
        self._effects: dict[type[Any], Callable[[Any], None]] = {
            wanted.Persist: self._persist,
            wanted.TruncateLog: self._truncate,
            wanted.AppendRecords: self._append,
            wanted.AppendControl: self._append_control,
            wanted.FlushLog: self._start_flush,
            wanted.Send: self._send,
            wanted.Answer: self._answer,
            wanted.AnswerProposal: self._answer_proposal,
            wanted.HighWatermarkMoved: self._commit,
            wanted.LeaderKnown: self._tell,
            wanted.BecameLeader: self._became_leader,
            wanted.LeadershipReady: self._tell,
            wanted.LeadershipLost: self._tell,
            wanted.WriteSnapshotPiece: self._keep_piece,
            wanted.LoadSnapshot: self._load,
            wanted.RaiseLogStart: self._raise_start,
            wanted.Wake: self._set_wake,
            wanted.ShutdownComplete: self._shut_down,
            wanted.Halt: self._halt,
        }

    def now_ms(self) -> int:
        """The time by this node's clock."""
        return self.world.scheduler.now_ms + self.clock_ms

    # Life and death

    def start(self) -> None:
        """Start, or start again, with what is on the disk."""
        assert self.raft is None
        self.life += 1
        self.stopping = False
        mirror = self.disk.open()
        chance = self.world.scheduler.chance
        self.raft = self.world.make_raft(
            key=self.key,
            config=self.config,
            log=mirror,
            state=self.disk.state,
            chance=chance.randint,
            now_ms=self.now_ms(),
        )
        self.applied, self.state = 0, 0
        if self.disk.snapshots:
            snapshot_id = max(self.disk.snapshots, key=lambda one: one.rank)
            self.applied, self.state = snapshot_id.offset, self.disk.snapshots[snapshot_id].state
        self.world.trace_line(f"{self.id} starts, log {self.disk.start}-{self.disk.end}")
        self._carry_out(self.raft.start(self.now_ms()))

    def crash(self) -> None:
        """Die, and lose the page cache."""
        self.raft = None
        self.dies_after = None
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self._flush = self._flush_next = self._loaded = None
        self.disk.crash(self.world.scheduler.chance)
        self.world.trace_line(f"{self.id} dies, log {self.disk.start}-{self.disk.end}")

    # Inputs

    def give(self, one: given.Input) -> None:
        """Give the core an input, unless the node is dead; a paused node gets it later."""
        if self.raft is None:
            return
        if self.paused_until > self.world.scheduler.now_ms:
            life = self.life
            self.world.scheduler.at(self.paused_until, lambda: self.give(one) if self.life == life else None)
            return
        self._carry_out(self.raft.step(one, self.now_ms()))
        while self._loaded is not None and self.raft is not None:
            one, self._loaded = self._loaded, None
            self._carry_out(self.raft.step(one, self.now_ms()))

    def receive(self, sender: int, message: tuple[Any, ...]) -> None:
        """Take a message from the network."""
        kind, alias, correlation, body = message
        if kind == "answer":
            self.give(given.Answered(alias, correlation, body))
            return
        asked = Asked(sender, alias, correlation, body)
        if isinstance(body, KRaftVersionsRequest):
            if self.raft is not None:
                self._send_answer(asked, KRaftVersionsResponse(kraft_versions=(0, 1)))
        else:
            self.give(given.Received(asked, body))

    # Outputs

    def _carry_out(self, outputs: list[wanted.Output]) -> None:
        try:
            for output in outputs:
                if self.dies_after is not None:
                    self.dies_after -= 1
                    if self.dies_after < 0:
                        raise Crash
                self._effects[type(output)](output)
        except Crash:
            self.crash()
            self.world.restart_later(self)
            return
        assert self.raft is not None
        self.world.invariants.on_epoch(self.id, self.raft.epoch)

    def _persist(self, output: wanted.Persist) -> None:
        self.disk.state = output.state
        voted = output.state.voted
        self.world.trace_line(
            f"{self.id} writes epoch {output.state.epoch} leader {output.state.leader_id} vote {voted and voted.id}"
        )
        if voted == self.key:
            self.world.invariants.on_vote(self.id, output.state.epoch, self.key, self.disk)
        elif voted is not None:
            self.world.unnerve(self)

    def _truncate(self, output: wanted.TruncateLog) -> None:
        self.world.trace_line(f"{self.id} truncates to {output.offset}")
        self.world.invariants.on_truncate(self.id, output.offset, self.disk)
        self.disk.truncate(output.offset)
        self.world.unnerve(self)

    def _append(self, output: wanted.AppendRecords) -> None:
        for batch in output.batches:
            entries = batch.records
            assert isinstance(entries, list)
            new = [entry if isinstance(entry, Entry) else Entry(batch.epoch, entry) for entry in entries]
            self._append_entries(batch.base_offset, new)

    def _append_control(self, output: wanted.AppendControl) -> None:
        entries = []
        for number, record in enumerate(output.records):
            voters = record.voters if isinstance(record, wanted.Voters) else None
            value = -(output.epoch * 1000 + output.base_offset * 10 + number) - 1
            entries.append(Entry(output.epoch, value, voters))
        self._append_entries(output.base_offset, entries)

    def _append_entries(self, base_offset: int, entries: list[Entry]) -> None:
        self.disk.append(entries)
        self.world.invariants.on_append(self.disk, base_offset, entries)

    def _start_flush(self, output: wanted.FlushLog) -> None:
        if self._flush is not None:
            self._flush_next = (output.offset, output.generation)
            return
        self._flush = (output.offset, output.generation)
        generation, life = self.disk.generation, self.life
        low, high = self.world.flush_ms
        delay_ms = self.world.scheduler.chance.randint(low, high)
        self.world.scheduler.after(delay_ms, lambda: self._end_flush(life, output, generation))

    def _end_flush(self, life: int, output: wanted.FlushLog, generation: int) -> None:
        if life != self.life or self.raft is None:
            return
        self.disk.flush(output.offset, generation)
        self._flush, following = None, self._flush_next
        self._flush_next = None
        if following is not None:
            self._start_flush(wanted.FlushLog(*following))
        self.give(given.Flushed(output.offset, output.generation))

    def _send(self, output: wanted.Send) -> None:
        to, request = output.to if output.to >= 0 else BOOTSTRAP_FIRST - output.to, output.request
        if isinstance(request, FetchRequest):
            self.world.invariants.on_fetch(self.id, request.epoch, request.fetch_offset)
        if self.world.nodes[to].raft is None and self.world.scheduler.chance.random() < 0.5:
            failed = given.SendFailed(output.to, output.correlation)  # The connection is refused.
            self.world.scheduler.after(1, lambda: self.give(failed))
            return
        self.world.network.send(self.id, to, ("ask", output.to, output.correlation, output.request))

    def _answer(self, output: wanted.Answer) -> None:
        asked, response = output.token, output.response
        if asked is None:
            return
        if isinstance(response, VoteResponse) and response.granted and not asked.request.pre_vote:
            assert isinstance(asked.request, VoteRequest)
            self.world.invariants.on_vote(self.id, response.epoch, asked.request.candidate, self.disk)
        if output.read_from is not None and isinstance(response, FetchResponse):
            response = _with(response, batches=self.disk.read(output.read_from, self.world.fetch_records_max))
        elif output.read_from is not None and isinstance(response, FetchSnapshotResponse):
            assert response.snapshot_id is not None
            pieces = self.disk.snapshots[response.snapshot_id].pieces()
            data = pieces[output.read_from : output.read_from + PIECE]
            response = _with(response, data=data, size=len(pieces))
        self._send_answer(asked, response)

    def _send_answer(self, asked: Asked, response: Response) -> None:
        if asked.sender >= 0:
            self.world.network.send(self.id, asked.sender, ("answer", asked.alias, asked.correlation, response))

    def _answer_proposal(self, output: wanted.AnswerProposal) -> None:
        pass  # What becomes of it is seen in the log.

    def _commit(self, output: wanted.HighWatermarkMoved) -> None:
        world, offset = self.world, output.offset
        assert self.raft is not None
        world.trace_line(f"{self.id} commits {offset}")
        world.invariants.on_commit(self.id, self.raft.epoch, offset, self.applied, self.disk)
        for at in range(self.applied, offset):
            self.state = next_state(self.state, self.disk.entry(at))
        self.applied = offset
        world.invariants.on_state(self.id, offset, self.state)
        if self.raft.is_leader:
            voters = self.raft.replica.log.voters.last
            world.invariants.on_leader_commit(self.id, self.raft.epoch, offset, voters, world.disks)
            if world.nerves and world.scheduler.chance.random() < 0.1:
                world.unnerve(self)

    def _became_leader(self, output: wanted.BecameLeader) -> None:
        self.world.trace_line(f"{self.id} leads {output.epoch} from {output.epoch_start_offset}")
        self.world.invariants.on_leader(self.id, output.epoch, self.disk)
        self.world.unnerve(self)

    def _tell(self, output: wanted.LeaderKnown | wanted.LeadershipReady | wanted.LeadershipLost) -> None:
        self.world.trace_line(f"{self.id} {type(output).__name__} {output.epoch}")

    def _keep_piece(self, output: wanted.WriteSnapshotPiece) -> None:
        assert isinstance(output.data, tuple)
        self.disk.keep_piece(output.snapshot_id, output.position, output.data)

    def _load(self, output: wanted.LoadSnapshot) -> None:
        snapshot = self.disk.finish_snapshot()
        if self.dies_after == 0:
            raise Crash
        self.disk.start_behind(output.snapshot_id)
        self.applied, self.state = output.snapshot_id.offset, snapshot.state
        self.world.trace_line(f"{self.id} loads {output.snapshot_id.offset}")
        self.world.invariants.on_state(self.id, self.applied, self.state)
        self._loaded = given.SnapshotLoaded(output.snapshot_id, snapshot.voters)

    def _raise_start(self, output: wanted.RaiseLogStart) -> None:
        self.disk.raise_start(output.snapshot_id)
        self.world.trace_line(f"{self.id} starts its log at {output.snapshot_id.offset}")
        self.world.invariants.on_snapshot(self.id, output.snapshot_id, self.applied, self.disk)

    def _set_wake(self, output: wanted.Wake) -> None:
        at = output.at_ms - self.clock_ms
        # A tick that comes too early does no harm, so a timer that is due earlier is left as it is.
        if self._wake is not None and self._wake_at <= at:
            self._wake_then = at
            return
        if self._wake is not None:
            self._wake.cancel()
        self._wake_at = self._wake_then = at
        self._wake = self.world.scheduler.at(at, self._tick)

    def _tick(self) -> None:
        self._wake = None
        if self._wake_then > self.world.scheduler.now_ms:
            self._wake_at = self._wake_then
            self._wake = self.world.scheduler.at(self._wake_then, self._tick)
        else:
            self.give(given.Tick())

    def _shut_down(self, output: wanted.ShutdownComplete) -> None:
        raise Crash

    def _halt(self, output: wanted.Halt) -> None:
        raise Violation("halted", f"{self.id}: {output.reason}")

    # The state machine

    def write_snapshot(self) -> None:
        """Write a snapshot of what is applied."""
        if self.raft is None or self.applied <= self.disk.start:
            return
        log = self.raft.replica.log
        snapshot_id = OffsetAndEpoch(self.applied, self.disk.entry(self.applied - 1).epoch)
        self.disk.snapshots[snapshot_id] = Snapshot(self.state, log.voters.at(self.applied))
        self.world.trace_line(f"{self.id} has snapshot {self.applied}")
        self.world.invariants.on_snapshot(self.id, snapshot_id, self.raft.high_watermark, self.disk)
        self.give(given.SnapshotWritten(snapshot_id))

    def clean(self) -> None:
        """Let the log start at the newest snapshot."""
        if self.raft is not None and self.disk.snapshots:
            self.give(given.CleanBefore(max(self.disk.snapshots, key=lambda snapshot: snapshot.rank)))


def _with(response: Any, **changes: Any) -> Any:
    """A response with the part that only a shell can put in."""
    fields = {name: getattr(response, name) for name in response.__struct_fields__}
    return type(response)(**{**fields, **changes})
