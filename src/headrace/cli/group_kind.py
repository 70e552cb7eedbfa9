"""What the tools for share groups and for streams groups have in common: whom they act on, and how they say no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.columns import BARE, columns, least
from headrace.cli.group_options import chosen
from headrace.cli.group_queries import list_groups, obey_timeout
from headrace.cli.java_words import exception, sentence_of
from headrace.cli.offset_reset import WRAPPED, remedy, told_as
from headrace.cli.session import Failure, describe
from headrace.model.errors import ErrorCode, HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from headrace.cli.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKind:
    """One kind of group, as a tool for it sees it."""

    word: str
    types: Sequence[str]
    states: Sequence[str]
    stranger: str
    """What a group is said to be that is not of this kind."""

    @property
    def failed(self) -> str:
        """How every refusal begins."""
        return f"\nError: Executing {self.word} group command failed due to "

    def refusal(self, error: HeadraceError) -> str:
        """An error as Kafka's tool tells it."""
        return self.failed + (sentence_of(error) if isinstance(error, KafkaError) else describe(error))

    async def run(self, session: Session, actions: Mapping[str, Callable[[Session], Awaitable[int]]]) -> int:
        """Do the one action that was asked for."""
        obey_timeout(session)
        action = next(action for action in actions if session.values.has(action))
        try:
            return await actions[action](session)
        except KafkaError as error:
            raise Failure(self.refusal(error), on_stdout=True, remedy=remedy(error)) from error

    async def list(self, session: Session) -> int:
        """Print the groups, with their states if that was asked for."""
        has_state = session.values.has("state")
        with told_as(self.failed + ("" if has_state else WRAPPED)):
            states = chosen(session.values, "state", self.states, "state")
            groups = await list_groups(session.cluster, states=states, types=self.types)
        rows = [[one.group_id, one.state] for one in groups]
        if has_state:
            for line in columns([["GROUP", "STATE"], *rows], [least(15), BARE]):
                session.report.line(line)
        else:
            for group_id, _ in rows:
                session.report.line(group_id)
        session.report.data([{"group": group_id, "state": state} for group_id, state in rows])
        return 0

    async def wanted(self, session: Session) -> Sequence[str]:
        """The groups that were named, or all of them."""
        if not session.values.has("all-groups"):
            return list(dict.fromkeys(session.values.all("group")))
        with told_as(self.failed + WRAPPED):
            return [one.group_id for one in await list_groups(session.cluster, types=self.types)]

    async def deletable(self, session: Session) -> tuple[Sequence[str], dict[str, str]]:
        """Which of the wanted groups can be deleted, and why not the others."""
        with told_as(self.failed + WRAPPED):
            states = {one.group_id: one.state for one in await list_groups(session.cluster, types=self.types)}
        wanted = [*states] if session.values.has("all-groups") else session.values.all("group")
        reasons = {group_id: self._obstacle(group_id, states.get(group_id)) for group_id in wanted}
        obstacles = {group_id: reason for group_id, reason in reasons.items() if reason}
        return [group_id for group_id in wanted if group_id not in obstacles], obstacles

    def _obstacle(self, group_id: str, state: str | None) -> str:
        named = f"{self.word.capitalize()} group '{group_id}'"
        if state is None:
            return f"java.lang.IllegalArgumentException: Group '{group_id}' {self.stranger}"
        if state == "Dead":
            return f"java.lang.IllegalStateException: {named} group state is DEAD."
        return "" if state == "Empty" else exception(ErrorCode.NON_EMPTY_GROUP, f"{named} is not EMPTY.")
