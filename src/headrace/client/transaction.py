"""Transactions of both producers: what they need of the engine, and the errors that end one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.client.engine import Engine, EngineException, raise_fault
from headrace.client.fault import BadOption, ClientFault
from headrace.client.offset_lists import Offsets, engine_offsets

if TYPE_CHECKING:
    from headrace.client.client_options import ClientOptions


class Transactions:
    """The transactional side of an engine's producer; blocks, and so is called from a thread by the async one."""

    def __init__(self, producer: Engine.Producer, options: ClientOptions) -> None:
        self._producer = producer
        self._options = options
        self._timeout_s = options.seconds("default_api_timeout_ms")
        self._is_ready = False

    def init(self) -> None:
        """Take the transactional id over, once; whoever had it before is fenced."""
        if self._is_ready:
            return
        if not self._options.engine.get("transactional.id"):
            raise BadOption("Transactions need a transactional_id", "Give the producer one that is its own.")
        try:
            self._producer.init_transactions(self._timeout_s)
        except EngineException as error:
            raise_fault(error)
        self._is_ready = True

    def begin(self) -> None:
        """Begin one."""
        self.init()
        try:
            self._producer.begin_transaction()
        except EngineException as error:
            raise_fault(error)

    def commit(self) -> None:
        """Make everything sent since `begin` visible, or nothing: a commit that cannot be is aborted."""
        try:
            self._producer.commit_transaction(self._timeout_s)
        except EngineException as error:
            if error.args[0].txn_requires_abort():
                self.abort()
            raise_fault(error)

    def abort(self) -> None:
        """Let nothing sent since `begin` become visible."""
        try:
            self._producer.abort_transaction(self._timeout_s)
        except EngineException as error:
            raise_fault(error)

    def abandon(self) -> None:
        """Abort because something else went wrong, which is what the program should hear of."""
        try:
            self._producer.abort_transaction(self._timeout_s)
        except EngineException:
            # The broker aborts it when its time is up; a fenced producer has nothing left to abort.
            return

    def send_offsets(self, offsets: Offsets, group: Any) -> None:
        """Commit a group's offsets with the transaction."""
        try:
            self._producer.send_offsets_to_transaction(
                engine_offsets(offsets), self._group_metadata(group), self._timeout_s
            )
        except EngineException as error:
            raise_fault(error)

    def _group_metadata(self, group: Any) -> Any:
        """The group as the engine wants it: a consumer's, what its `group_metadata` gave, or only a name."""
        if hasattr(group, "group_metadata"):
            return group.group_metadata()
        if not isinstance(group, str):
            return group
        if not group:
            raise ClientFault("Offsets are committed for a group", "Give the consumer, or the group's name.")
        # Only a consumer can say it; this one never joins, so that the group's members are not disturbed.
        stand_in = Engine.Consumer({"bootstrap.servers": self._options.where, "group.id": group, "log_level": 0})
        try:
            return stand_in.consumer_group_metadata()
        finally:
            stand_in.close()
