"""One partition's next state, as Apache Kafka 4.3.1 decides it.

The cases were drawn at random and put to Kafka's own PartitionChangeBuilder. Three differences are meant and not among
them: nobody is eligible here who is no replica any more, -1 is never a last known leader, and a leader that is elected
uncleanly by an ISR change has to recover whatever the old leader said.
"""

import json
from pathlib import Path

import pytest
from msgspec.structs import asdict

from headrace.cores.controller.partition_change import Election, Intent, partition_change
from headrace.cores.metadata import Metadata, PartitionState
from headrace.model.ids import ZERO_ID
from headrace.model.metadata_records import PartitionChangeRecord

CASES = [json.loads(line) for line in (Path(__file__).parent / "partition_change_cases.jsonl").read_text().splitlines()]
KINDS = sorted({case["why"] for case in CASES})


def tuples(fields: dict) -> dict:
    """Lists as the tuples that records hold."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def decided(case: dict) -> dict | None:
    """What the record for a case says; the cases tell nothing of directories."""
    record = partition_change(
        Metadata(),
        ZERO_ID,
        PartitionState(**{"index": 0, "isr": (), "leader_epoch": 3, **tuples(case["state"])}),
        Intent(election=Election[case["election"]], **tuples(case["intent"])),
        min_isr=case["min_isr"],
        has_elr=case["elr"],
        may_lead=lambda replica: replica in case["alive"],
    )
    if record is None:
        return None
    nothing = asdict(PartitionChangeRecord(partition_id=0, topic_id=ZERO_ID))
    said = {name: value for name, value in asdict(record).items() if value != nothing[name]}
    said.pop("directories", None)
    return said


@pytest.mark.parametrize("kind", KINDS)
def test_partitions_change_as_in_kafka(kind):
    """Is every change that Kafka makes of a partition ours too, field by field?"""
    cases = [case for case in CASES if case["why"] == kind]

    assert len(cases) > 50
    for case in cases:
        expected = case["expected"] and tuples(case["expected"])
        assert expected == decided(case), case
