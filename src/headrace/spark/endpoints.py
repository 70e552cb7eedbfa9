"""Where a read begins and ends, found out by asking the cluster what the options mean."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headrace.client.records import TopicPartition
from headrace.spark.catalog import Catalog
from headrace.spark.offsets import data_lost, kept_within, questions, timed
from headrace.spark.option_table import SourceOptions
from headrace.spark.positions import EARLIEST, LATEST, Kind, Position

LOG = logging.getLogger("headrace.spark")


def start_of(catalog: Catalog, options: SourceOptions, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset each partition is read from."""
    return _offsets(catalog, options, options.starting, places, or_latest=options.by_timestamp_or_latest)


def end_of(catalog: Catalog, options: SourceOptions, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset each partition is read up to; a time nobody has reached means the end."""
    return _offsets(catalog, options, options.ending, places, or_latest=True)


def report_losses(sentences: Sequence[str], options: SourceOptions) -> None:
    """Fail because of what is lost, or say it and go on, as failOnDataLoss has it."""
    if sentences and options.fail_on_data_loss:
        raise data_lost(sentences)
    for sentence in sentences:
        LOG.warning("Data is lost: %s.", sentence)


def _offsets(
    catalog: Catalog, options: SourceOptions, position: Position, places: Sequence[TopicPartition], *, or_latest: bool
) -> dict[TopicPartition, int]:
    found = catalog.find(questions(position, places))
    if position.kind in {Kind.TIMESTAMP, Kind.TIMESTAMPS}:
        late = [place for place, offset in found.items() if offset < 0] if or_latest else []
        return timed(position, found, catalog.find(dict.fromkeys(late, LATEST)), or_latest=or_latest)
    named = _named(catalog, options, position, places)
    if named:
        earliest, latest = (catalog.find(dict.fromkeys(named, mark)) for mark in (EARLIEST, LATEST))
        named, losses = kept_within(named, earliest, latest, position.option)
        report_losses(losses, options)
    rest = [place for place in places if place not in named and place not in found]
    # A partition that a group has not come to yet is read from its beginning: nothing is skipped.
    return {**found, **named, **catalog.find(dict.fromkeys(rest, EARLIEST))}


def _named(
    catalog: Catalog, options: SourceOptions, position: Position, places: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Offsets that somebody wrote down: the user, or a group."""
    if position.kind is Kind.GROUP:
        return catalog.committed(options.commit_group, places)
    return {place: mark for place, mark in position.marks.items() if mark >= 0}
