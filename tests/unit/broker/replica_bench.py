"""A partition on a disk in memory and its part in a cluster, driven by hand: flushes happen when a test says so."""

from types import SimpleNamespace
from uuid import UUID

from headrace.broker.partition import Partition
from headrace.cores.producers import ProducerStates
from headrace.cores.replication.messages import ReplicationSettings
from headrace.cores.replication.replica import Change, Replica
from headrace.model.log_config import LogConfig
from headrace.records.batch import read_header
from headrace.records.build import NewRecord, build_batch
from headrace.storage.log_dir import LogDir
from headrace.storage.memory_files import MemoryFiles
from headrace.wire.fetch import FetchPartition

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=7)
ME, OTHER, THIRD = 1, 2, 3


class HandFlusher:
    """A flush queue that a test empties."""

    def __init__(self):
        self.owners = []

    def request(self, owner):
        if owner not in self.owners:
            self.owners.append(owner)

    def flush(self):
        """Flush everything that was asked for."""
        owners, self.owners = self.owners, []
        for owner in owners:
            job = owner.log.flush_job()
            if job is not None:
                job.run()
                owner.log.flushed(job)
            owner.on_flushed()


class Standing:
    """One partition of broker 1, and what the metadata says of it."""

    def __init__(self, **config):
        self.files = MemoryFiles()
        self.log_dir = LogDir.open(self.files, "/data")
        self.flusher = HandFlusher()
        self.faults = []
        self.wanted = []
        self.config = LogConfig(**config)
        self.settings = ReplicationSettings(
            min_insync_replicas=self.config.min_insync_replicas, flushes=self.config.flush_on_acks_all
        )
        self.brokers = {
            node: SimpleNamespace(broker_epoch=10, fenced=False, in_controlled_shutdown=False)
            for node in (ME, OTHER, THIRD)
        }
        producers = ProducerStates()
        log = self.log_dir.create_log("t-0", topic_id=TOPIC_ID, config=self.config, producers=producers, now_ms=NOW_MS)
        self.partition = Partition(
            topic="t",
            topic_id=TOPIC_ID,
            index=0,
            log=log,
            producers=producers,
            flusher=self.flusher,
            lane=None,
            on_fault=lambda partition, fault: self.faults.append(fault),
        )
        self.partition.replica = Replica(
            log,
            broker_id=ME,
            broker_epoch=10,
            brokers=self.brokers,
            settings=self.settings,
            high_watermark=0,
        )
        self.partition.on_isr_change = lambda partition, request: self.wanted.append(request)

    @property
    def log(self):
        return self.partition.log

    def told(self, *, leader=ME, leader_epoch=0, partition_epoch=0, replicas=(ME, OTHER, THIRD), isr=None):
        """The metadata says this now."""
        replica = self.partition.replica
        change = replica.update(
            SimpleNamespace(
                replicas=replicas,
                isr=replicas if isr is None else isr,
                leader=leader,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
            ),
            0,
        )
        if change in {Change.BECAME_LEADER, Change.NEW_EPOCH}:
            self.log.assign_epoch(leader_epoch, replica.leader.epoch_start_offset)
            self.partition.lead(leader_epoch, replica.leader if replica.leader.followers else None)
        elif change is Change.BECAME_FOLLOWER:
            self.partition.follow(leader_epoch)
        elif replica.leader is not None:
            self.partition.rejoin(replica.leader if replica.leader.followers else None)
        return change

    def append(self, count=1):
        """Append one batch as the leader; the offset behind it."""
        batch = batch_of(count)
        return self.partition.append(memoryview(batch), read_header(batch), NOW_MS).end_offset

    def fetched(self, node, offset, *, epoch=0, last_epoch=None, start=0, broker_epoch=10):
        """A follower asks for what comes at an offset."""
        last_epoch = self.log.epoch_at(offset - 1) if last_epoch is None else last_epoch
        asked = FetchPartition(0, epoch, offset, last_epoch if offset else -1, start, 1 << 20)
        return self.partition.fetched(node, broker_epoch, asked)


def batch_of(count, *, base_offset=0, epoch=0):
    """A batch of some records, as a leader of an epoch numbered it."""
    batch = build_batch([NewRecord(timestamp=NOW_MS, value=b"v") for _ in range(count)])
    batch = bytearray(batch)
    batch[0:8] = base_offset.to_bytes(8, "big")
    batch[12:16] = epoch.to_bytes(4, "big")
    return batch
