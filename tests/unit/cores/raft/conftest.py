"""A replica on the bench: one core, no network, no disk; a test gives inputs and looks at outputs."""

from uuid import UUID

import pytest

from headrace.cores.raft import messages
from headrace.cores.raft.config import QuorumConfig
from headrace.cores.raft.inputs import Answered, Flushed, Received, Tick
from headrace.cores.raft.log_mirror import LogMirror
from headrace.cores.raft.outputs import Answer, Send, Wake
from headrace.cores.raft.quorum_state import QuorumState
from headrace.cores.raft.raft import Raft
from headrace.cores.raft.voters import Endpoint, ReplicaKey, Voter, VoterHistory, VoterSet


def endpoints(node_id):
    """Where a node listens."""
    return (Endpoint("CONTROLLER", f"node{node_id}", 9093),)


def key(node_id, generation=0):
    """A node with its directory."""
    return ReplicaKey(node_id, UUID(int=1000 * (generation + 1) + node_id))


def voter_set(*ids):
    """Voters with directories."""
    return VoterSet(Voter(key(node_id), endpoints(node_id)) for node_id in ids)


class Bench:
    """One replica, driven by hand."""

    def __init__(self, *, me=0, voters=(0, 1, 2), dynamic=False, log=None, state=None, bootstrap_servers=0, **config):
        chosen = voter_set(*voters)
        history = VoterHistory(None, [(-1, chosen)]) if dynamic else VoterHistory(chosen)
        self.log = log if log is not None else LogMirror(voters=history)
        self.now_ms = 0
        self.config = QuorumConfig(
            cluster_id="c", endpoints=endpoints(me), bootstrap_servers=bootstrap_servers, **config
        )
        self.raft = Raft(
            key=key(me),
            config=self.config,
            log=self.log,
            state=state if state is not None else QuorumState(),
            chance=lambda low, high: low,
            now_ms=0,
        )
        self.outputs = self.raft.start(0)

    @property
    def role(self):
        """The name of the role."""
        return type(self.raft.replica.role).__name__

    def step(self, given):
        """Give an input; the outputs are kept and given back."""
        self.outputs = self.raft.step(given, self.now_ms)
        return self.outputs

    def wait(self, by_ms):
        """Let time pass."""
        self.now_ms += by_ms
        return self.step(Tick())

    def ask(self, request, token="token"):
        """Have somebody ask something; gives the response, if there is one at once."""
        self.step(Received(token, request))
        return self.response(token)

    def response(self, token="token"):
        """What a token was answered in the last step."""
        found = [output.response for output in self.outputs if isinstance(output, Answer) and output.token == token]
        return found[0] if found else None

    def all(self, kind):
        """The outputs of a kind in the last step."""
        return [output for output in self.outputs if isinstance(output, kind)]

    def sent(self, kind=messages.Request):
        """The requests of a kind that were sent in the last step."""
        return [output for output in self.outputs if isinstance(output, Send) and isinstance(output.request, kind)]

    def reply(self, send, response):
        """Answer something that was sent."""
        return self.step(Answered(send.to, send.correlation, response))

    def flush(self):
        """Have everything flushed."""
        return self.step(Flushed(self.log.end_offset, self.log.generation))

    def wake_ms(self):
        """When the core wants to be woken, as last told."""
        return self.all(Wake)[-1].at_ms

    def elect(self, *granting):
        """Make this replica the leader, by the votes of some others."""
        self.wait(10_000)
        for response in (messages.VoteResponse, messages.VoteResponse):
            epoch = self.raft.epoch
            for send in self.sent(messages.VoteRequest):
                if send.to in granting and self.role in {"Prospective", "Candidate"} and epoch == self.raft.epoch:
                    self.reply(send, response(epoch=epoch, granted=True))
        assert self.role == "Leader"
        return self

    def follow(self, leader_id=1, epoch=1):
        """Make this replica a follower; the fetch it sends is among the outputs."""
        request = messages.BeginQuorumEpochRequest(leader_id=leader_id, epoch=epoch, endpoints=endpoints(leader_id))
        self.step(Received("begin", request))
        assert self.role == "Follower"
        return self.sent(messages.FetchRequest)[0]

    def fetch(self, node_id, offset, last_epoch, **more):
        """Have a replica fetch from this leader."""
        more.setdefault("epoch", self.raft.epoch)
        more.setdefault("replica", key(node_id))
        request = messages.FetchRequest(fetch_offset=offset, last_epoch=last_epoch, **more)
        return self.ask(request, token=f"fetch {node_id}")


@pytest.fixture
def bench():
    """Makes replicas for the bench."""
    return Bench
