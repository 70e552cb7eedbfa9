"""Where replicas go: leaders evenly over brokers, the replicas of a partition over racks, fenced brokers last.

The brokers stand in a ring in which neighbours are of different racks. Partition by partition the leader moves on by
one place; the other replicas are the places behind it, at a distance that grows with each round, so that the same
brokers do not always stand together. A rack is used twice only when every rack is used once.
Kafka spreads leaders over racks first, which loads the brokers of a small rack more; here every broker leads alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from uuid import UUID

from msgspec import Struct

from headrace.cores.metadata import Metadata
from headrace.model.errors import ErrorCode, KafkaError
from headrace.model.metadata_records import RegisterBrokerRecord

MIGRATING = UUID(int=0)
"""The directory of a replica that nobody ever told (KIP-858)."""
UNASSIGNED = UUID(int=1)
"""The directory of a replica whose broker has not chosen one yet."""
LOST = UUID(int=2)
"""The directory of a replica that was in one that failed."""
RESERVED_DIRECTORIES_MAX = 100
"""Directory ids below this have a meaning of their own."""

Placement = Sequence[Sequence[int]]
"""The replicas of each partition, the leader first."""


class UsableBroker(Struct, frozen=True, kw_only=True):
    """A registered broker, as far as it matters to who places replicas."""

    broker_id: int
    rack: str | None = None
    is_fenced: bool = False
    is_shutting_down: bool = False
    directory: UUID | None = None
    """Where its replicas go; None where directories are not told of."""

    @property
    def is_active(self) -> bool:
        """Whether a new replica on it is in sync from the start."""
        return not self.is_fenced and not self.is_shutting_down


Racks = tuple[dict[int, str | None], int]
"""The rack of each broker, and how many racks there are."""

Brokers = dict[int, UsableBroker]
"""The registered brokers by id."""


def brokers_of(metadata: Metadata, named: Sequence[int] | None) -> Brokers:
    """The brokers a command places replicas on: those registered, or those named where nobody registers."""
    if named is not None:
        return {broker_id: UsableBroker(broker_id=broker_id) for broker_id in named}
    return {
        broker_id: UsableBroker(
            broker_id=broker_id,
            rack=broker.rack,
            is_fenced=broker.fenced,
            is_shutting_down=broker.in_controlled_shutdown,
            directory=default_directory(broker),
        )
        for broker_id, broker in metadata.brokers.items()
    }


def default_directory(broker: RegisterBrokerRecord | None) -> UUID:
    """The directory a new replica on a broker is in until the broker says otherwise."""
    if broker is None:
        return UNASSIGNED
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED


def is_online(broker: RegisterBrokerRecord, directory: UUID) -> bool:
    """Whether a replica in this directory of a broker's can be served."""
    if directory in {UNASSIGNED, MIGRATING}:
        return True
    if directory == LOST:
        return False
    return not broker.log_dirs or directory in broker.log_dirs


def check_assignment(replicas: Sequence[int], brokers: Iterable[int], *, factor: int | None) -> None:
    """Whether a hand-made replica list names known brokers, each once, as many as its siblings do."""
    if not replicas:
        raise _refused_assignment("an empty replica list.")
    known = set(brokers)
    for broker, times in sorted(Counter(replicas).items()):
        if broker not in known:
            raise _refused_assignment(f"broker {broker}, but no such broker is registered.")
        if times > 1:
            raise _refused_assignment(f"the broker {broker} more than once.")
    if factor is not None and len(replicas) != factor:
        raise _refused_assignment(
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, "
            f"which have {factor} replica(s)."
        )


def _refused_assignment(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {what}")


def refused_factor(factor: int, reason: str) -> KafkaError:
    """A partition cannot be replicated so many times."""
    return KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition {factor} time(s): {reason}"
    )


def place_replicas(
    brokers: Sequence[int] | Brokers, *, partitions: int, factor: int, first: int
) -> list[tuple[int, ...]]:
    """Spread partitions, and the leadership of each, over the brokers, starting at a place that moves."""
    known = brokers if isinstance(brokers, dict) else {each: UsableBroker(broker_id=each) for each in brokers}
    usable = [broker for _, broker in sorted(known.items()) if not broker.is_shutting_down]
    leaders = _striped([broker for broker in usable if not broker.is_fenced])
    fenced = _striped([broker for broker in usable if broker.is_fenced])
    if not leaders:
        raise refused_factor(factor, "All brokers are currently fenced.")
    if factor > len(usable):
        raise refused_factor(
            factor,
            f"The target replication factor of {factor} cannot be reached because only {len(usable)} broker(s) are "
            "registered.",
        )
    names = {broker.broker_id: broker.rack for broker in usable}
    racks = names, len(set(names.values()))
    placement = []
    for index in range(partitions):
        turn, rounds = first + index, first // len(leaders) + index // len(leaders)
        followers = chain(_followers(leaders, turn, distance=rounds), _from(fenced, turn))
        placement.append(_over_racks(leaders[turn % len(leaders)], followers, factor, racks))
    return placement


def _striped(brokers: Sequence[UsableBroker]) -> list[int]:
    """The brokers in an order in which neighbours are of different racks, as far as that goes."""
    racks: dict[str, list[int]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack or "", []).append(broker.broker_id)
    columns = [racks[name] for name in sorted(racks)]
    depth = max(map(len, columns), default=0)
    return [column[row] for row in range(depth) for column in columns if row < len(column)]


def _followers(ring: Sequence[int], turn: int, *, distance: int) -> Iterator[int]:
    """All but the one whose turn it is to lead, from some distance behind it on."""
    others = len(ring) - 1
    for step in range(others):
        yield ring[(turn + 1 + (distance + step) % others) % len(ring)]


def _from(ring: Sequence[int], turn: int) -> Iterator[int]:
    for step in range(len(ring)):
        yield ring[(turn + step) % len(ring)]


def _over_racks(leader: int, followers: Iterator[int], factor: int, racks: Racks) -> tuple[int, ...]:
    """The leader, and followers in their order, of which each round takes at most one in a rack."""
    names, rack_count = racks
    if rack_count == 1:
        return (leader, *islice(followers, factor - 1))
    chosen = [leader]
    used = {names[leader]}
    while len(chosen) < factor:
        skipped: list[int] = []
        for broker in followers:
            if names[broker] in used:
                skipped.append(broker)
                continue
            chosen.append(broker)
            used.add(names[broker])
            if len(chosen) == factor or len(used) == rack_count:
                break
        followers = chain(skipped, followers)
        used = set()
    return tuple(chosen)
