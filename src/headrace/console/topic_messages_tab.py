"""The messages of a topic: live or from somewhere, filtered, opened, taken along.

Live reading goes on from where it is: whoever pauses and resumes misses nothing, because the position is kept and not
the records.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from nicegui import background_tasks, ui

from headrace.client.client_options import gather
from headrace.client.cluster import Cluster
from headrace.client.fetching import FetchedRecord, Fetcher
from headrace.client.option_table import ADMIN
from headrace.client.records import TopicPartition
from headrace.console import record_equivalents
from headrace.console.equivalents_panel import EquivalentsPanel
from headrace.console.live import sentence_of
from headrace.console.record_controls import RecordControls
from headrace.console.record_export import export
from headrace.console.record_list import RecordList
from headrace.console.record_query import RecordQuery
from headrace.console.record_reader import RecordPage, RecordReader
from headrace.console.toast import toast
from headrace.console.words import count, several
from headrace.gateway.streams.tokens import BadFilter

if TYPE_CHECKING:
    from headrace.console.page import Visit

_WAIT_MS = 400
"""How long a live read waits for a record; it comes at once if there is one."""
_PAUSE_S = 0.15
"""Between two live reads, so that a topic that never rests does not drown a browser."""


def build_messages(visit: Visit, topic: str) -> None:
    """The tab."""
    _MessagesTab(visit, topic)


class _MessagesTab:
    """One person looking at the messages of a topic."""

    def __init__(self, visit: Visit, topic: str) -> None:
        self._visit = visit
        self._query = RecordQuery.from_url(topic, visit.query)
        self._reader: RecordReader | None = None
        self._waiting: Cluster | None = None
        self._following: asyncio.Task[None] | None = None
        self._is_following = False
        self._held: list[FetchedRecord] = []
        self._seen = 0
        self._scanned = 0
        with ui.element("section").classes("hr-card hr-messages"):
            self._controls = RecordControls(self._query, self._change)
            with ui.element("div").classes("hr-status"):
                self._dot = ui.element("span").classes("hr-dot")
                self._status = ui.label("Reading…").props('role="status" data-test="status"')
                ui.space()
                self._pause = ui.button("Pause", icon="pause", on_click=self._turn)
                self._pause.props('flat dense no-caps data-test="pause"')
                with ui.button("Export", icon="download").props("flat dense no-caps"), ui.menu():
                    ui.menu_item("JSON lines", lambda: self._export("jsonl"))
                    ui.menu_item("CSV", lambda: self._export("csv"))
            self._list = RecordList()
            self._list.on("expand", self._expand)
            self._list.on_gone = self._leave
            self._more = ui.button("Read on", icon="expand_more", on_click=self._read_on)
            self._more.props("flat no-caps").classes("hr-more")
        self._panel = EquivalentsPanel(record_equivalents.records(visit.where, self._query))
        self._more.set_visibility(False)
        self._show_state()
        ui.timer(0.01, self._begin, once=True)

    async def _begin(self) -> None:
        await self._open()
        await self._controls.find_zone()
        with contextlib.suppress(Exception):  # what is wrong with the topic has been told already
            (found,) = await self._visit.services.admin.describe_topics([self._query.topic])
            self._controls.know_partitions([one.partition for one in found.partitions])

    async def _change(self, query: RecordQuery) -> None:
        self._query = query
        self._visit.remember(**query.to_url())
        self._panel.change(record_equivalents.records(self._visit.where, query))
        await self._open()

    # --- reading

    async def _open(self) -> None:
        """Begin anew with the question as it is now."""
        self._stop()
        query, services = self._query, self._visit.services
        self._controls.complain("")
        try:
            reader = RecordReader(services.admin, self._fetcher(), query)
        except BadFilter as error:
            self._controls.complain(f"{error}")
            return
        self._reader, self._held, self._seen, self._scanned = reader, [], 0, 0
        try:
            await reader.open()
            page = None if query.start == "live" else await reader.page()
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told)
            self._say(sentence_of(error), "bad")
            self._list.fill([])
            return
        if reader is not self._reader:
            return  # another question was asked meanwhile
        self._list.fill([])
        if page is None:
            self._go()
            self._show_state()
        else:
            self._list.fill(reversed(page.records) if query.is_newest_first else page.records)
            self._panel.change(record_equivalents.records(self._visit.where, query, oldest_ms=_oldest_ms(query, page)))
            self._tell(page)

    def _fetcher(self) -> Fetcher:
        """Whoever waits for records needs connections of its own: answers come in order."""
        if self._query.start != "live":
            return self._visit.services.fetcher
        if self._waiting is None:
            self._waiting = Cluster(gather(ADMIN, {}, config=self._visit.services.client).connection())
        return Fetcher(self._waiting)

    # --- following

    def _go(self) -> None:
        """Read on, from where the reader stands."""
        assert self._reader is not None
        self._is_following = True
        self._following = background_tasks.create(self._follow(self._reader, self._following), name="live view")

    def _stop(self) -> None:
        self._is_following = False
        if self._following is not None:
            self._following.cancel()

    async def _follow(self, reader: RecordReader, before: asyncio.Task[None] | None) -> None:
        """Read until somebody stops it; one after the other, because a reader has one position."""
        if before is not None:
            await asyncio.wait([before])
        while self._is_following and reader is self._reader:
            try:
                self._held += await reader.live(_WAIT_MS)
            except Exception as error:  # noqa: BLE001  (a broker that restarts is told, and asked again)
                self._say(sentence_of(error), "bad")
            else:
                if self._is_following:
                    self._put_held()
            await asyncio.sleep(_PAUSE_S)

    def _put_held(self) -> None:
        """Show what has come; what a read brought that was under way when somebody paused waits for them."""
        records, self._held = self._held, []
        if records:
            self._seen += len(records)
            self._list.prepend(reversed(records))
        self._show_state()

    async def _read_on(self) -> None:
        if self._reader is not None:
            page = await self._reader.page()
            self._list.more(page.records)
            self._tell(page)

    def _turn(self) -> None:
        if self._is_following:
            self._stop()
        else:
            self._put_held()
            self._go()
        self._show_state()

    def _leave(self) -> None:
        self._stop()
        if self._waiting is not None:
            background_tasks.create(_close(self._waiting, self._following), name="close a live view")

    # --- telling

    def _show_state(self) -> None:
        is_live, is_running = self._query.start == "live", self._is_following
        self._pause.set_visibility(is_live)
        self._pause.set_text("Pause" if is_running else "Resume")
        self._pause.set_icon("pause" if is_running else "play_arrow")
        if is_live:
            words = "Live" if is_running else "Paused: goes on where it stopped"
            self._say(f"{words} · {several(self._seen, 'record')}", "live" if is_running else "warn")
            self._more.set_visibility(False)

    def _tell(self, page: RecordPage) -> None:
        self._seen += len(page.records)
        self._scanned += page.scanned
        words = several(self._seen, "record")
        if self._query.filter:
            words += f" that fit, of {count(self._scanned)} looked through"
        if not self._seen:
            words = "Nothing fits the filter" if self._query.filter else "There are no records here"
        self._say(words if page.is_end or self._query.start == "last" else f"{words} · there is more", "")
        self._more.set_visibility(not page.is_end and self._query.start not in {"last", "live"})
        self._show_state()

    def _say(self, words: str, tone: str) -> None:
        self._status.text = words
        self._dot.classes(replace=f"hr-dot hr-dot-{tone}" if tone else "hr-dot")

    # --- one record, and all of them

    async def _expand(self, event: Any) -> None:
        place = TopicPartition(self._query.topic, int(event.args["p"]))
        offset = int(event.args["o"])
        try:
            found = await self._visit.services.fetcher.fetch({place: offset}, max_wait_ms=0)
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told)
            toast(sentence_of(error), "bad")
            return
        record = next((one for one in found[place].records if one.offset == offset), None)
        if record is None:
            toast("The record is no longer there.", "bad")
        else:
            self._list.show(record, str(event.args["as"]))

    async def _export(self, form: str) -> None:
        try:
            await export(self._visit.services, self._query, form)
        except Exception as error:  # noqa: BLE001  (whatever it is, the person is told)
            toast(sentence_of(error), "bad")


def _oldest_ms(query: RecordQuery, page: RecordPage) -> int | None:
    """From when on the newest are: nobody has to read the whole log for them. None if all there was is not enough."""
    if query.start != "last" or len(page.records) < query.limit:
        return None
    oldest_ms = page.records[0].timestamp
    # A record may have no time, or one that is still to come: a stream cannot begin there.
    return oldest_ms if 0 <= oldest_ms <= time.time() * 1000 else None


async def _close(cluster: Cluster, following: asyncio.Task[None] | None) -> None:
    """Hang up, once nobody reads any more: a reader whose connection ends opens another."""
    if following is not None:
        await asyncio.wait([following])
    await cluster.close()
