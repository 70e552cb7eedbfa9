"""Whatever happens to a cluster in whatever order, its metadata keeps its promises."""

import os

import pytest

from random_cluster import COMMANDS, STEPS, RandomCluster, check_cluster, step

SEEDS = int(os.environ.get("HEADRACE_CLUSTERS", "60"))
KEPT = [1541]
"""Found a bug once: an unclean cancellation of a reassignment that did not say so."""


@pytest.mark.parametrize("seed", [*KEPT, *range(SEEDS)])
def test_state_is_sound_after_every_command(seed):
    """Do ISR, ELR, leaders, epochs and index hold after each of many random commands, and is state = replay?"""
    check_cluster(seed)


def test_random_clusters_do_everything():
    """Do the random commands get anywhere: is every kind of them carried out, and every kind of record written?"""
    done, kinds = set(), set()
    for seed in range(20):
        cluster = RandomCluster(seed)
        done |= {step(cluster) for _ in range(COMMANDS)}
        kinds |= {type(record).__name__ for record in cluster.records}

    assert {do.__name__ for _, do in STEPS} <= done
    assert {
        "BrokerRegistrationChangeRecord",
        "ClearElrRecord",
        "ConfigRecord",
        "FeatureLevelRecord",
        "PartitionChangeRecord",
        "PartitionRecord",
        "ProducerIdsRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "RemoveTopicRecord",
        "TopicRecord",
        "UnregisterBrokerRecord",
    } == kinds
