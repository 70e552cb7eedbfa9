"""A metadata log on a disk in memory, and quorums of one node on it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.coordination.quorum.metadata_log import MetadataLog
from headrace.storage.memory_files import MemoryFiles
from quorum_nodes import Node, static_voters


class Shelf:
    """A disk in memory with one node's log dir."""

    def __init__(self):
        self.files = MemoryFiles()
        self.threads = ThreadPoolExecutor(2)
        self.node = None
        self.log_dir = None

    def new_node(self, **options):
        """A node on this disk that listens nowhere."""
        self.node = Node(1, self.files, "/data", **options)
        return self.node

    def open_log(self, **options):
        """The metadata log as a replica opens it."""
        self.log_dir, log = self.new_node(**options).open_log()
        return MetadataLog(log, self.log_dir, executor=self.threads, clock=lambda: 1_700_000_000_000)

    def close_log(self):
        """Close it in good order."""
        assert self.log_dir.close(0) == {}

    async def alone(self, **options):
        """A node that is its own quorum, started."""
        node = self.new_node()
        await node.start(static_voters([node]), **options)
        return node

    def close(self):
        """Let go of the threads."""
        self.threads.shutdown()


@pytest.fixture
def shelf():
    """A disk in memory."""
    shelf = Shelf()
    yield shelf
    shelf.close()


@pytest.fixture
def play():
    """Plays a scene to its end."""
    return asyncio.run
