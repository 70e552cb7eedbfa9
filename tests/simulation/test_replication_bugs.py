"""Known bugs of replication, planted one at a time: the simulator finds each within a bounded number of schedules."""

from dataclasses import dataclass

import pytest

from headrace.cores.replication import leader as leader_module
from headrace.cores.replication.follower import Follower, Verdict
from headrace.cores.replication.isr import InSyncReplicas
from headrace.cores.replication.leader import Leader
from headrace.cores.replication.messages import NO_EPOCH, FetchPosition
from headrace.sim.network import Weather
from headrace.sim.replication import InvariantBroken, World
from headrace.sim.replication_broker import SimulatedBroker
from headrace.sim.replication_controller import SimulatedController
from headrace.sim.replication_faults import Faults
from headrace.sim.replication_log import SimulatedLog


def skip_leader_epoch_check(monkeypatch):
    """The leader counts fetches that were meant for another leader epoch (KIP-320)."""
    monkeypatch.setattr(leader_module, "check_leader_epoch", lambda asked, current: None)


def acknowledge_before_flush(monkeypatch):
    """The leader's own records count before they are on its disk."""
    monkeypatch.setattr(
        Leader, "appended", lambda self, now_ms: setattr(self, "high_watermark", self._log.log_end_offset)
    )


def truncate_to_high_watermark(monkeypatch):
    """A follower of a new leader truncates to its high watermark, as Kafka did before leader epochs (KIP-101)."""
    follow = SimulatedBroker._follow

    def truncate_and_follow(self):
        self.log.truncate_to(self.replica.high_watermark)
        self._world.checker.cut(self)
        follow(self)

    monkeypatch.setattr(SimulatedBroker, "_follow", truncate_and_follow)


def expand_before_epoch_start(monkeypatch):
    """A follower joins the ISR once it has reached the high watermark, which a new leader may know too low."""

    def expand(self, follower):
        if self.isr.pending is None and follower.offset >= self.high_watermark and self.is_eligible(follower):
            self._propose(self.isr.committed | {follower.broker_id})

    monkeypatch.setattr(Leader, "_expand", expand)


def shrink_without_waiting(monkeypatch):
    """A leader leaves a follower out as soon as it has asked the controller to (KIP-497)."""
    propose = InSyncReplicas.propose

    def propose_and_take(self, isr, leader_epoch):
        propose(self, isr, leader_epoch)
        self.committed = self.maximal = frozenset(self.pending.broker_ids)

    monkeypatch.setattr(InSyncReplicas, "propose", propose_and_take)


def fetch_before_flush(monkeypatch):
    """A follower asks for more before it has flushed, and is counted by what it asked for."""
    monkeypatch.setattr(Follower, "must_flush", False)


def raise_high_watermark_before_truncation(monkeypatch):
    """A follower takes the leader's high watermark from an answer that tells it to truncate (KAFKA-14704)."""
    answered = Follower.answered

    def raise_and_answer(self, asked, answer):
        if asked is self._asked:
            self.appended(answer)
        return answered(self, asked, answer)

    monkeypatch.setattr(Follower, "answered", raise_and_answer)


def elect_anyone(monkeypatch):
    """The controller elects whoever is alive, in sync or not."""

    def choose(self, old, isr, elr, unclean):
        able = [replica for replica in old.replicas if self.is_active(replica) and replica != unclean]
        return old.leader if old.leader in able else able[0] if able else -1

    monkeypatch.setattr(SimulatedController, "choose_leader", choose)


def ignore_broker_epochs(monkeypatch):
    """A follower is counted, and taken into the ISR, by what an earlier life of it fetched (KIP-903)."""
    fetch = Leader.fetch
    monkeypatch.setattr(
        Leader,
        "fetch",
        lambda self, follower, asked, *, broker_epoch, now_ms: fetch(
            self, follower, asked, broker_epoch=-1, now_ms=now_ms
        ),
    )


def forget_epoch_at_empty_fetch(monkeypatch):
    """A follower no longer tells its last epoch once a fetch brought nothing (KAFKA-15510)."""
    without_epoch = set()
    ask, answered, appended = Follower.ask, Follower.answered, Follower.appended
    ends = {}

    def remember(self, asked, answer):
        action = answered(self, asked, answer)
        if action is Verdict.APPEND:
            ends[self._log] = self._log.log_end_offset
        return action

    def forget(self, answer):
        (without_epoch.add if ends[self._log] == self._log.log_end_offset else without_epoch.discard)(self._log)
        return appended(self, answer)

    def ask_without(self):
        position = ask(self)
        if position is not None and self._log in without_epoch:
            position = self._asked = FetchPosition(
                leader_epoch=position.leader_epoch, offset=position.offset, last_fetched_epoch=NO_EPOCH
            )
        return position

    monkeypatch.setattr(Follower, "answered", remember)
    monkeypatch.setattr(Follower, "appended", forget)
    monkeypatch.setattr(Follower, "ask", ask_without)


def believe_late_answers(monkeypatch):
    """A follower acts on an answer to what it asked before: a late one cuts off what the leader counts on."""
    answered = Follower.answered

    def believe(self, asked, answer):
        self._asked = asked
        return answered(self, asked, answer)

    monkeypatch.setattr(Follower, "answered", believe)


def commit_below_minimum(monkeypatch):
    """The high watermark moves while fewer replicas are in sync than the topic asks for (KIP-966)."""
    advance = Leader._advance

    def advance_anyway(self, now_ms):
        self._is_under_min = False
        return advance(self, now_ms)

    monkeypatch.setattr(Leader, "_advance", advance_anyway)


def drop_pending_change(monkeypatch):
    """Metadata that tells what an answer told already makes a leader forget the change it has asked for since."""

    def commit(self, isr, partition_epoch):
        self.committed = self.maximal = frozenset(isr)
        self.partition_epoch = partition_epoch
        self.pending = self.outgoing = None

    monkeypatch.setattr(InSyncReplicas, "commit", commit)


def keep_empty_epoch(monkeypatch):
    """A leader that wrote nothing keeps its epoch when it follows, and takes it for the epoch of what it is sent."""
    truncate_to = SimulatedLog.truncate_to

    def truncate_if_longer(self, offset):
        if offset < self.log_end_offset:
            truncate_to(self, offset)

    monkeypatch.setattr(SimulatedLog, "truncate_to", truncate_if_longer)


def compare_nothing_deleted(monkeypatch):
    """A leader takes a follower in that holds other records than it had, where it has deleted its own since."""
    monkeypatch.setattr(leader_module, "check_comparable", lambda log, offset, last_fetched_epoch: None)


def act_on_old_metadata(monkeypatch):
    """A restarted broker leads by metadata from before its restart, though it may have lost what it wrote."""

    def take_over(self):
        if self.partition is not None and self.broker_epoch >= 0:
            own = self.view.get(self.broker_id)
            if own is not None:
                self.view[self.broker_id] = type(own)(broker_epoch=self.broker_epoch, incarnation=own.incarnation)
            original(self)

    original = SimulatedBroker._take_over
    monkeypatch.setattr(SimulatedBroker, "_take_over", take_over)


class FollowersThatRestart(Faults):
    """A follower falls behind, comes level, and loses its power while the controller is asked to take it in again."""

    def plan(self, until_ms):
        self._scheduler.after(self._chance.randint(200, 500), self._fall_behind)

    def _fall_behind(self):
        leader = self._world.controller.partition.leader
        follower = self._some_broker()
        if follower.broker_id != leader:
            self._world.network.part([follower.broker_id], [leader])
            self._world.network.weather = Weather(delay_ms=(1, 10), slow=0.3, slow_ms=(300, 1500))
            self._scheduler.after(400, self._world.network.heal)
            self._scheduler.after(401, lambda: self._watch(self._world.brokers[leader], follower))

    def _watch(self, broker, follower):
        leader = broker.replica.leader
        if leader is not None and leader.isr.pending and follower.broker_id in leader.isr.pending.broker_ids:
            self._crash(follower, loses_page_cache=True)
            self._world.network.cut(broker.broker_id, follower.broker_id)
        elif self._scheduler.now_ms < 2000:
            self._scheduler.after(1, lambda: self._watch(broker, follower))


class QuickElections(Faults):
    """One election after the other, while brokers hear of them late and each at its own time."""

    def __init__(self, world):
        super().__init__(world)
        self._kinds = [self._elect, self._elect_often, self._elect_often, self._slow_metadata, self._slow_metadata] * 3


class RestlessReplicas(Faults):
    """Replicas leave and join all the time, and brokers hear of it late."""

    def __init__(self, world):
        super().__init__(world)
        self._kinds = [self._cut_one_way, self._part, self._slow_disk, self._slow_metadata, self._slow_metadata] * 3

    def _change_weather(self):
        self._world.network.weather = Weather(delay_ms=(1, 10), slow=0.2, slow_ms=(100, 700))


@dataclass(frozen=True)
class Bug:
    """A bug and how many schedules may pass before it is found; a rare one is looked for from a later seed on."""

    plant: object
    schedules: int
    first: int = 0
    flushes: bool | None = None
    faults: type[Faults] = Faults


BUGS = [
    Bug(skip_leader_epoch_check, 50, faults=QuickElections),
    Bug(acknowledge_before_flush, 5),
    Bug(truncate_to_high_watermark, 20),
    Bug(expand_before_epoch_start, 200),
    Bug(shrink_without_waiting, 10),
    Bug(fetch_before_flush, 20),
    Bug(raise_high_watermark_before_truncation, 100),
    Bug(elect_anyone, 30),
    Bug(ignore_broker_epochs, 150, flushes=False, faults=FollowersThatRestart),
    Bug(forget_epoch_at_empty_fetch, 80),
    Bug(believe_late_answers, 10),
    Bug(commit_below_minimum, 20),
    Bug(drop_pending_change, 100, faults=RestlessReplicas),
    Bug(keep_empty_epoch, 100, faults=QuickElections),
    Bug(act_on_old_metadata, 100),
    Bug(compare_nothing_deleted, 10, first=4370),
]


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.plant.__name__)
def test_planted_bug_is_found(monkeypatch, bug):
    """Does the simulator find this bug within so many schedules?"""
    bug.plant(monkeypatch)

    for seed in range(bug.first, bug.first + bug.schedules):
        try:
            World(seed, flushes=bug.flushes, faults=bug.faults).run()
        except InvariantBroken:
            return
    pytest.fail(f"not found in {bug.schedules} schedules")


@pytest.mark.slow
@pytest.mark.parametrize("faults", [FollowersThatRestart, QuickElections, RestlessReplicas])
@pytest.mark.parametrize("flushes", [True, False])
def test_no_bug_no_finding(faults, flushes):
    """Is nothing found under the same faults where nothing is planted?"""
    for seed in range(15):
        World(seed, flushes=flushes, faults=faults).run()
