"""What workers that consume, transform and produce in transactions did, held against exactly-once.

Each worker takes some inputs, writes for every one of them a record to every output place, commits the inputs' offsets
with them, and notes what came of the transaction. A reader of committed records notes what is in the places at the end.
`check` says which promises the two cannot both be true under:

    lost-input    an input has no output in one of the places
    duplicate     an input has more than one output in a place
    G1a           a record of a transaction was read that had been aborted
    lost-commit   nothing is there of a transaction whose commit was acknowledged
    torn          a transaction is there in part: other inputs in one place than in another, or than it began with
    phantom       a record was read that no transaction wrote
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from headrace.testing.history import Place, Violation

Input = tuple[int, int]
"""Partition and offset of a record of the input topic."""


class Ending(Enum):
    """What a worker knows of a transaction in the end."""

    COMMITTED = "the commit was acknowledged"
    ABORTED = "the abort was acknowledged"
    UNKNOWN = "no answer, or the worker died"


class Transaction(NamedTuple):
    """One transaction: a name no other has, what went in, and how it ended."""

    name: str
    inputs: frozenset[Input]
    ending: Ending


class Output(NamedTuple):
    """One committed record as the reader got it."""

    place: Place
    offset: int
    transaction: str
    source: Input


class _Facts:
    """The two lists, sorted in the ways the rules ask for."""

    def __init__(
        self,
        inputs: Collection[Input],
        transactions: Sequence[Transaction],
        outputs: Sequence[Output],
        places: Sequence[Place],
    ) -> None:
        self.inputs = inputs
        self.transactions = {transaction.name: transaction for transaction in transactions}
        self.outputs = outputs
        self.places = places
        self.times = Counter((output.place, output.source) for output in outputs)
        self.sources: dict[str, dict[Place, set[Input]]] = defaultdict(lambda: defaultdict(set))
        for output in outputs:
            self.sources[output.transaction][output.place].add(output.source)


def check(
    inputs: Collection[Input],
    transactions: Sequence[Transaction],
    outputs: Sequence[Output],
    *,
    places: Sequence[Place],
) -> list[Violation]:
    """Every promise the history breaks, when all work is done."""
    facts = _Facts(inputs, transactions, outputs, places)
    assert len(facts.transactions) == len(transactions), "two transactions have one name: the history says nothing"
    return [violation for rule in (_once, _aborted_and_phantom, _whole) for violation in rule(facts)]


def _once(facts: _Facts) -> Iterator[Violation]:
    for place in facts.places:
        for source in sorted(facts.inputs):
            times = facts.times[place, source]
            if times == 0:
                yield Violation("lost-input", f"{source} is not in {place}")
            elif times > 1:
                where = [output for output in facts.outputs if (output.place, output.source) == (place, source)]
                yield Violation("duplicate", f"{source} is in {place} {times} times: {where}")


def _aborted_and_phantom(facts: _Facts) -> Iterator[Violation]:
    for output in facts.outputs:
        transaction = facts.transactions.get(output.transaction)
        if transaction is None or output.source not in transaction.inputs:
            yield Violation("phantom", f"{output}")
        elif transaction.ending is Ending.ABORTED:
            yield Violation("G1a", f"{output}")


def _whole(facts: _Facts) -> Iterator[Violation]:
    for transaction in facts.transactions.values():
        found = facts.sources.get(transaction.name, {})
        if not found:
            if transaction.ending is Ending.COMMITTED:
                yield Violation("lost-commit", f"{transaction}")
            continue
        for place in facts.places:
            if found.get(place, set()) != transaction.inputs:
                missing = sorted(transaction.inputs - found.get(place, set()))
                yield Violation("torn", f"{transaction.name} ({transaction.ending.name}) lacks {missing} in {place}")
