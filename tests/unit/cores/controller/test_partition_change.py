"""One partition's next state."""

import pytest

from controller_shell import directories
from headrace.cores.controller.partition_change import Election, Intent, partition_change, without
from headrace.cores.metadata import Metadata, PartitionState, merged
from headrace.model.ids import ZERO_ID
from headrace.model.metadata_records import PartitionChangeRecord, RegisterBrokerRecord


def state(**fields) -> PartitionState:
    """A partition on brokers 1, 2 and 3, led by 1."""
    values = {"index": 0, "replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, "leader_epoch": 5, **fields}
    return PartitionState(**values)


def change(
    before: PartitionState, *, alive=(1, 2, 3), min_isr: int = 2, has_elr: bool = True, **intent
) -> PartitionChangeRecord | None:
    """What an intent becomes where these brokers are alive."""
    return partition_change(
        Metadata(),
        ZERO_ID,
        before,
        Intent(**intent),
        min_isr=min_isr,
        has_elr=has_elr,
        may_lead=lambda replica: replica in alive,
    )


def after(before: PartitionState, **rest) -> PartitionState:
    """The partition after an intent."""
    record = change(before, **rest)
    assert record is not None
    return merged(before, record)


def test_nothing_to_change_is_no_record():
    """Is a healthy partition left alone by every kind of election?"""
    assert [None] * 3 == [change(state(), election=election) for election in Election]


def test_leader_that_dies_is_followed_by_the_next_in_sync():
    """Is the first replica that is in sync and alive elected, with a new epoch?"""
    new = after(state(isr=(1, 3)), alive=(2, 3), isr=(3,))

    assert (3, 6, (3,)) == (new.leader, new.leader_epoch, new.isr)


@pytest.mark.parametrize(
    ("isr", "min_isr", "elr"), [((1, 2), 2, ()), ((1,), 2, (2, 3)), ((1,), 1, ()), ((1, 2), 3, (3,))]
)
def test_who_leaves_a_small_isr_stays_eligible(isr, min_isr, elr):
    """Are replicas that leave while too few are in sync eligible, and none while enough are?"""
    new = after(state(), isr=isr, min_isr=min_isr)

    assert (isr, elr) == (new.isr, new.elr)


def test_eligible_replicas_are_forgotten_when_enough_are_in_sync():
    """Does an ISR that has grown again make the ELR empty?"""
    assert () == after(state(isr=(1,), elr=(2, 3)), isr=(1, 2)).elr


def test_unclean_shutdown_ends_eligibility():
    """Is a replica that may have lost data neither in sync nor eligible?"""
    new = after(state(isr=(1,), elr=(2, 3)), isr=(1,), unclean_shutdown=2)

    assert ((1,), (3,)) == (new.isr, new.elr)


def test_last_in_sync_leaves_an_empty_isr_where_eligible_are_kept():
    """Does the last leader become eligible and last known, and the partition leaderless?"""
    new = after(state(isr=(1,), elr=(2,)), alive=(), isr=())

    assert ((), (1, 2), -1, (1,), 6) == (new.isr, new.elr, new.leader, new.last_known_elr, new.leader_epoch)


def test_last_in_sync_stays_in_the_isr_where_eligible_are_not_kept():
    """Does the ISR remember who alone can lead cleanly?"""
    new = after(state(isr=(1,)), alive=(2, 3), isr=(), has_elr=False)

    assert ((1,), (), -1, ()) == (new.isr, new.elr, new.leader, new.last_known_elr)
    assert 1 == after(new, alive=(1,), has_elr=False).leader


def test_eligible_replica_is_elected_when_nobody_is_in_sync():
    """Does an eligible replica lead, alone in sync, and without a recovery?"""
    leaderless = state(isr=(), elr=(2, 3), leader=-1, last_known_elr=(1,))

    new = after(leaderless, alive=(3,))

    assert (3, (3,), (2,), (), 0) == (new.leader, new.isr, new.elr, new.last_known_elr, new.leader_recovery_state)


def test_eligible_replica_is_not_elected_over_one_in_sync():
    """Does the ELR count only when the ISR is empty?"""
    assert -1 == after(state(isr=(1,), elr=(2,)), alive=(2,), isr=(1,)).leader


def test_last_known_leader_is_elected_when_nobody_is_eligible():
    """Is who led last elected, uncleanly, when ISR and ELR are empty?"""
    leaderless = state(isr=(), elr=(), leader=-1, last_known_elr=(2,))

    assert None is change(leaderless, alive=(1, 3))
    new = after(leaderless, alive=(1, 2, 3))
    assert (2, (2,), 1, ()) == (new.leader, new.isr, new.leader_recovery_state, new.last_known_elr)


@pytest.mark.parametrize("has_elr", [True, False])
def test_unclean_election_only_where_it_is_wanted(has_elr):
    """Does whoever lives lead if the topic would rather lose records, in recovery and alone in sync?"""
    old = state(isr=(1,), elr=())

    assert -1 == after(old, alive=(2, 3), isr=(), has_elr=has_elr).leader
    new = after(old, alive=(2, 3), isr=(), election=Election.UNCLEAN, has_elr=has_elr)
    assert (2, (2,), (), 1) == (new.leader, new.isr, new.elr, new.leader_recovery_state)


def test_clean_election_is_preferred_to_an_unclean_one():
    """Is a replica in sync elected though an earlier one lives, even if unclean were allowed?"""
    new = after(state(isr=(1, 3)), alive=(2, 3), isr=(3,), election=Election.UNCLEAN)

    assert (3, 0) == (new.leader, new.leader_recovery_state)


def test_preferred_replica_leads_again_if_it_is_in_sync():
    """Does a preferred election elect the first replica, and nobody new if that cannot lead?"""
    assert 1 == after(state(leader=2), election=Election.PREFERRED).leader
    assert None is change(state(leader=2, isr=(2, 3)), min_isr=1, election=Election.PREFERRED)
    assert None is change(state(leader=2), alive=(2, 3), election=Election.PREFERRED)


def test_reassignment_is_complete_when_all_that_stay_are_in_sync():
    """Are the old replicas taken away, the lists emptied and the leader epoch raised, but not before?"""
    moving = state(replicas=(1, 4, 2), isr=(1, 2), adding_replicas=(4,), removing_replicas=(2,))

    assert None is change(moving, alive=(1, 2, 4))
    new = after(moving, alive=(1, 2, 4), isr=(1, 2, 4))
    assert ((1, 4), (1, 4), (), ()) == (new.replicas, new.isr, new.adding_replicas, new.removing_replicas)
    assert (1, 6) == (new.leader, new.leader_epoch)


def test_leader_that_is_reassigned_away_is_replaced():
    """Does another lead when the leader's own replica goes?"""
    moving = state(replicas=(4, 1), isr=(1,), adding_replicas=(4,), removing_replicas=(1,))

    new = after(moving, alive=(1, 4), isr=(1, 4))

    assert ((4,), 4, (4,)) == (new.replicas, new.leader, new.isr)


def test_removed_replica_is_not_eligible():
    """Does nobody stay eligible who is no replica any more?"""
    moving = state(replicas=(1, 2, 3), isr=(1, 3), removing_replicas=(3,), elr=(2,))

    new = after(moving, isr=(1, 2, 3), min_isr=3)

    assert ((1, 2), ()) == (new.replicas, new.elr)


def test_directories_follow_the_replicas():
    """Are known directories kept, and new replicas given their broker's?"""
    metadata = Metadata()
    metadata.replay(RegisterBrokerRecord(broker_id=4, log_dirs=directories(4)))
    old = state(replicas=(1, 2), isr=(1, 2), directories=directories(1) + directories(2))

    record = partition_change(
        metadata,
        ZERO_ID,
        old,
        Intent(replicas=(4, 2, 1), adding=(4,)),
        min_isr=1,
        has_elr=False,
        may_lead=lambda replica: True,
    )

    assert record is not None
    assert directories(4) + directories(2) + directories(1) == record.directories
    assert -2 == record.leader


def test_recovery_ends_when_the_leader_says_so():
    """Is a leader's own word taken for the end of its recovery?"""
    assert (
        0
        == after(state(isr=(1,), leader_recovery_state=1), isr=(1,), min_isr=1, recovery_state=0).leader_recovery_state
    )


def test_order_is_kept_without_some():
    """Are brokers taken out without changing the order of the others?"""
    assert (3, 1) == without((3, 2, 1), (2, 9))
