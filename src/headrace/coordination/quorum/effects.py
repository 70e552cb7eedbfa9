"""What the core wants done to the quorum state, the log, the snapshots and the wire."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from headrace.coordination.quorum.quorum_state_file import write_quorum_state
from headrace.cores.raft import inputs as given
from headrace.cores.raft import outputs as wanted
from headrace.cores.raft.messages import (
    Batch,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
    Response,
)
from headrace.model.errors import ErrorCode, KafkaError, StorageFault
from headrace.net.link import LinkBroken

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Executor

    from headrace.coordination.quorum.applier import Applier
    from headrace.coordination.quorum.metadata_log import MetadataLog
    from headrace.coordination.quorum.peers import Peers
    from headrace.coordination.quorum.snapshot_file import SnapshotFiles
    from headrace.records.compression import Bytes
    from headrace.storage.files import Files
    from headrace.storage.span import Span

logger = logging.getLogger(__name__)

PIECE_BYTES_MAX = 16 * 1024 * 1024
"""The most of a snapshot that one answer carries, whatever is asked for."""

Result = TypeVar("Result")


class Question(Struct, frozen=True, eq=False):
    """A request that waits for the core's answer."""

    request: Request
    answer: asyncio.Future[Response]

    def settle(self, response: Response) -> None:
        """Give the answer, if anybody still waits for it."""
        if not self.answer.done():
            self.answer.set_result(response)

    def refuse(self, error: KafkaError) -> None:
        """Say that there will be none."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # Whoever asked may be gone; that is no mistake to complain about.


class Effects:
    """Everything of a replica that is not its mind."""

    def __init__(
        self,
        *,
        files: Files,
        directory: str,
        log: MetadataLog,
        snapshots: SnapshotFiles,
        peers: Peers,
        applier: Applier,
        executor: Executor,
        fetch_bytes_max: int,
        feed: Callable[..., None],
        on_fault: Callable[[StorageFault], None],
    ) -> None:
        self._files = files
        self._directory = directory
        self._log = log
        self._snapshots = snapshots
        self._peers = peers
        self._applier = applier
        self._executor = executor
        self._fetch_bytes_max = fetch_bytes_max
        self._feed = feed
        self._on_fault = on_fault
        self.elsewhere: set[int] = set()
        """Controllers that we asked and that are of another cluster."""
        self._tasks: set[asyncio.Task[None]] = set()

    def acts(self) -> dict[type[Any], Callable[[Any], Coroutine[Any, Any, None] | None]]:
        """Which function does which output; a coroutine is waited for before the next one is done."""
        return {
            wanted.Persist: self._persist,
            wanted.TruncateLog: self._truncate,
            wanted.AppendRecords: self._append,
            wanted.AppendControl: self._append_control,
            wanted.FlushLog: self._flush,
            wanted.Send: self._send,
            wanted.Answer: self._answer,
            wanted.WriteSnapshotPiece: self._write_piece,
            wanted.LoadSnapshot: self._load,
            wanted.RaiseLogStart: self._raise_start,
        }

    def stop(self) -> None:
        """Do nothing more that is under way beside the core."""
        for task in tuple(self._tasks):
            task.cancel()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the core."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (mistake := task.exception()) is not None:
            logger.error("quorum_task_failed", exc_info=mistake)

    async def in_thread(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Do something that waits for the disk."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)

    # The quorum state and the log

    async def _persist(self, persist: wanted.Persist) -> None:
        await self.in_thread(write_quorum_state, self._files, self._directory, persist.state)

    async def _truncate(self, truncate: wanted.TruncateLog) -> None:
        logger.info("metadata_log_truncated to=%d from=%d", truncate.offset, self._log.end_offset)
        await self._log.truncate(truncate.offset)

    def _append(self, append: wanted.AppendRecords) -> None:
        self._log.append_fetched(append.batches)

    def _append_control(self, append: wanted.AppendControl) -> None:
        self._log.append_control(append)

    def _flush(self, flush: wanted.FlushLog) -> None:
        self._log.flush(flush.offset, flush.generation, self._flushed, self._on_fault)

    def _flushed(self, offset: int, generation: int) -> None:
        self._feed(given.Flushed(offset, generation))

    # Other nodes

    def _send(self, send: wanted.Send) -> None:
        self.spawn(self._ask(send))

    async def _ask(self, send: wanted.Send) -> None:
        try:
            response = await self._peers.ask(send)
        except LinkBroken as problem:
            logger.debug("quorum_question_failed to=%d reason=%s", send.to, problem)
            self._feed(given.SendFailed(send.to, send.correlation))
        else:
            self._look_at_cluster(send.to, response)
            self._feed(given.Answered(send.to, send.correlation, response))

    def _look_at_cluster(self, node_id: int, response: Response) -> None:
        """Take note of controllers that are of another cluster; the core asks them for ever."""
        if response.error is not ErrorCode.INCONSISTENT_CLUSTER_ID:
            self.elsewhere.discard(node_id)
        elif node_id not in self.elsewhere:
            self.elsewhere.add(node_id)
            logger.warning(
                "quorum_of_another_cluster controller=%d error=%s reason=This node's log dirs are of another cluster "
                "than that controller. Format them with the id of its cluster, or correct controller.quorum.voters or "
                "controller.quorum.bootstrap.servers.",
                node_id,
                response.error.name,
            )

    def _answer(self, answer: wanted.Answer) -> None:
        question, response = answer.token, answer.response
        assert isinstance(question, Question)
        if answer.read_from is None:
            question.settle(response)
        elif isinstance(response, FetchSnapshotResponse):
            self.spawn(self._answer_with_piece(question, response, answer.read_from))
        else:
            assert isinstance(response, FetchResponse)
            self._answer_with_records(question, response, answer.read_from)

    def _answer_with_records(self, question: Question, response: FetchResponse, offset: int) -> None:
        """Put in what lies in the log, from a thread if it has to come from the disk."""
        try:
            span = self._log.find(offset, self._fetch_bytes_max)
            if span.resident():
                question.settle(_with_records(response, span, span.view()))
                return
        except (StorageFault, KafkaError) as fault:
            logger.error("metadata_log_unreadable offset=%d reason=%s", offset, fault)  # noqa: TRY400
            question.settle(FetchResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR, epoch=response.epoch))
            return
        self.spawn(self._answer_with_cold_records(question, response, span))

    async def _answer_with_cold_records(self, question: Question, response: FetchResponse, span: Span) -> None:
        try:
            question.settle(_with_records(response, span, await self.in_thread(span.load)))
        except StorageFault:
            # Cut off or dropped while the disk was busy, or the disk is broken: either way there is nothing to send.
            question.settle(FetchResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR, epoch=response.epoch))

    async def _answer_with_piece(self, question: Question, response: FetchSnapshotResponse, position: int) -> None:
        request = question.request
        assert isinstance(request, FetchSnapshotRequest)
        max_bytes = max(min(request.max_bytes, PIECE_BYTES_MAX), 1)
        try:
            found = await self.in_thread(self._snapshots.piece, request.snapshot_id, position, max_bytes)
        except StorageFault as fault:
            question.refuse(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(fault)))
            return
        if found is None:
            question.settle(replace(response, error=ErrorCode.SNAPSHOT_NOT_FOUND))
        elif position >= found[0]:
            question.settle(replace(response, error=ErrorCode.POSITION_OUT_OF_RANGE))
        else:
            question.settle(replace(response, size=found[0], data=found[1]))

    # Snapshots

    async def _write_piece(self, piece: wanted.WriteSnapshotPiece) -> None:
        await self.in_thread(self._snapshots.add_piece, piece.snapshot_id, piece.position, piece.data)

    async def _load(self, load: wanted.LoadSnapshot) -> None:
        """Keep the snapshot, then empty the log: a crash in between is put right at the next start."""
        snapshot_id = load.snapshot_id
        snapshot = await self.in_thread(self._snapshots.complete, snapshot_id)
        self._applier.load(snapshot_id, snapshot)
        await self._log.begin_again(snapshot_id.offset)
        await self.in_thread(self._snapshots.remove_before, snapshot_id)
        logger.info("metadata_snapshot_loaded offset=%d epoch=%d", snapshot_id.offset, snapshot_id.epoch)
        self._feed(given.SnapshotLoaded(snapshot_id, snapshot.voters), first=True)

    async def _raise_start(self, start: wanted.RaiseLogStart) -> None:
        await self._log.raise_start(start.snapshot_id.offset)
        await self.in_thread(self._snapshots.remove_before, start.snapshot_id)


def _with_records(response: FetchResponse, span: Span, data: Bytes) -> FetchResponse:
    """An answer with a part of the log, as one piece: nobody looks at its batches on this side."""
    count = span.end_offset - span.base_offset
    return replace(response, batches=(Batch(span.base_offset, count, response.epoch, None, data),))
