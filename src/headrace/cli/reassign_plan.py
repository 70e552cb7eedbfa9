"""Plans of kafka-reassign-partitions: read from JSON, checked, drawn up anew, and what they mean for throttles.

Nothing here asks a cluster; chance comes in as an argument.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.cli.json_file import FileRefused, check_version, field, read_json, rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random

    from headrace.cli.administration import Place, Reassignment

ANY_LOG_DIR = "any"
Replica = tuple[str, int, int]
"""Topic, partition and broker."""
Moves = dict["Place", tuple[set[int], set[int]]]
"""From which brokers and to which each partition moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where partitions shall be, and in which directories of the brokers."""

    replicas: list[tuple[Place, list[int]]]
    """As written: a partition that is named twice is here twice."""
    log_dirs: dict[Replica, str]

    def targets(self) -> dict[Place, list[int]]:
        """The brokers of each partition."""
        return dict(self.replicas)


def shown(place: Place) -> str:
    """A partition as Kafka writes it."""
    return f"{place[0]}-{place[1]}"


def read_plan(path: str) -> Plan:
    """The plan in a file, unchecked."""
    document = read_json(path)
    check_version(document)
    replicas: list[tuple[Place, list[int]]] = []
    log_dirs: dict[Replica, str] = {}
    for row in rows(document, "partitions"):
        place = (field(row, "topic", str), field(row, "partition", int))
        brokers = [_broker(one) for one in field(row, "replicas", list)]
        paths = field(row, "log_dirs", list) if row.get("log_dirs") is not None else [ANY_LOG_DIR] * len(brokers)
        if len(paths) != len(brokers):
            raise FileRefused(
                f"Size of replicas list {brokers} is different from size of log dirs list "
                f"[{', '.join(map(str, paths))}] for partition {shown(place)}"
            )
        replicas.append((place, brokers))
        log_dirs |= {(*place, broker): path for broker, path in zip(brokers, paths, strict=True) if path != ANY_LOG_DIR}
    return Plan(replicas=replicas, log_dirs=log_dirs)


def _broker(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FileRefused(f"Expected `Integer` value, received {json.dumps(value)}")
    return value


def check_plan(plan: Plan) -> None:
    """Refuse a plan that cannot be executed."""
    if not plan.replicas:
        raise FileRefused("Partition reassignment list cannot be empty")
    if not all(brokers for _, brokers in plan.replicas):
        raise FileRefused("Partition replica list cannot be empty")
    twice = _duplicates([shown(place) for place, _ in plan.replicas])
    if twice:
        raise FileRefused(f"Partition reassignment contains duplicate topic partitions: {','.join(twice)}")
    faults = [
        f"{shown(place)} contains multiple entries for {','.join(map(str, again))}"
        for place, brokers in plan.replicas
        if (again := _duplicates(brokers))
    ]
    if faults:
        raise FileRefused(f"Partition replica lists may not contain duplicate entries: {'. '.join(faults)}")


def read_topics(path: str) -> list[str]:
    """The topics to move."""
    document = read_json(path)
    check_version(document)
    topics = [str(field(row, "topic", str)) for row in rows(document, "topics")]
    twice = _duplicates(topics)
    if twice:
        raise FileRefused(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return topics


def read_brokers(text: str) -> list[int]:
    """The brokers of --broker-list."""
    try:
        brokers = [int(part) for part in text.split(",")]
    except ValueError:
        raise FileRefused(f'For input string: "{text}"') from None
    twice = _duplicates(brokers)
    if twice:
        raise FileRefused(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return brokers


def _duplicates(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(value for position, value in enumerate(values) if value in values[:position]))


def plan_json(replicas: Mapping[Place, Sequence[int]], log_dirs: Mapping[Replica, str]) -> str:
    """A plan as the tool prints it, to be saved and given back."""
    return json.dumps(plan_document(replicas, log_dirs), separators=(",", ":"), ensure_ascii=False)


def plan_document(replicas: Mapping[Place, Sequence[int]], log_dirs: Mapping[Replica, str]) -> dict[str, Any]:
    """A plan as plain data."""
    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(brokers),
            "log_dirs": [log_dirs.get((topic, index, broker), ANY_LOG_DIR) for broker in brokers],
        }
        for (topic, index), brokers in sorted(replicas.items())
    ]
    return {"version": 1, "partitions": partitions}


# --- drawing up


def propose(
    current: Mapping[Place, Sequence[int]], racks: Mapping[int, str | None], chance: Random
) -> dict[Place, list[int]]:
    """Spread the partitions of each topic anew over brokers, replicas over racks as far as there are any."""
    proposed: dict[Place, list[int]] = {}
    for topic in dict.fromkeys(name for name, _ in current):
        indexes = sorted(index for name, index in current if name == topic)
        factor = len(current[topic, indexes[0]])
        if not racks:
            raise FileRefused("All brokers are currently fenced, or have all their log directories cordoned.")
        if factor > len(racks):
            raise FileRefused(
                f"The target replication factor of {factor} cannot be reached because only {len(racks)} broker(s) are "
                "registered or some brokers have all their log directories cordoned."
            )
        for index, brokers in zip(indexes, _spread(len(indexes), factor, racks, chance), strict=True):
            proposed[topic, index] = brokers
    return proposed


def _spread(count: int, factor: int, racks: Mapping[int, str | None], chance: Random) -> list[list[int]]:
    """Brokers of each partition: leaders in turn, followers of other racks first, shifted from round to round."""
    ring = _alternating(racks)
    start = chance.randrange(len(ring))
    shift = chance.randrange(len(ring))
    spread = []
    for number in range(count):
        first = (start + number) % len(ring)
        turn = (shift + number // len(ring)) % max(len(ring) - 1, 1)
        others = [
            ring[(first + 1 + (turn + step) % max(len(ring) - 1, 1)) % len(ring)] for step in range(len(ring) - 1)
        ]
        chosen = [ring[first]]
        for wants_new_rack in (True, False):
            for broker in others:
                used = {racks[one] for one in chosen}
                is_new = racks[broker] is None or racks[broker] not in used
                if len(chosen) < factor and broker not in chosen and (is_new or not wants_new_rack):
                    chosen.append(broker)
        spread.append(chosen)
    return spread


def _alternating(racks: Mapping[int, str | None]) -> list[int]:
    """The brokers so that neighbours are of different racks where possible."""
    by_rack: dict[str | None, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    queues = [by_rack[rack] for rack in sorted(by_rack, key=str)]
    return [queue[turn] for turn in range(max(map(len, queues))) for queue in queues if turn < len(queue)]


# --- throttles


def moves(
    ongoing: Mapping[Place, Reassignment],
    targets: Mapping[Place, Sequence[int]],
    current: Mapping[Place, Sequence[int]],
) -> Moves:
    """Which brokers give and which receive, for the moves that go on and those that are asked for."""
    found: Moves = {place: ({*move.replicas} - {*move.adding}, {*move.adding}) for place, move in ongoing.items()}
    for place, brokers in targets.items():
        sources = found[place][0] if place in found else {*current[place]}
        found[place] = (sources, {*brokers} - sources)
    return found


def throttled_replicas(found: Moves) -> dict[str, tuple[str, str]]:
    """The values of the leaders' and the followers' throttled replicas, by topic."""
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for (topic, index), (sources, destinations) in found.items():
        leaders.setdefault(topic, set()).update(f"{index}:{broker}" for broker in sources)
        followers.setdefault(topic, set()).update(f"{index}:{broker}" for broker in destinations)
    return {topic: (",".join(sorted(leaders[topic])), ",".join(sorted(followers[topic]))) for topic in leaders}


def brokers_of(found: Moves) -> list[int]:
    """Everybody who takes part in moves."""
    return sorted({broker for sources, destinations in found.values() for broker in (*sources, *destinations)})


def listed(places: Iterable[Place]) -> str:
    """Partitions in order, separated by commas."""
    return ",".join(shown(place) for place in sorted(places))
