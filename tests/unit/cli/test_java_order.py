"""The order of Java's hash tables, against what Java itself printed."""

from headrace.cli.java_order import hash_order, partition_order, result_order, string_hash


def test_string_hash_is_javas():
    """Do known strings have the hash Java gives them, beyond the basic plane too?"""
    assert [0, 97, 96354, 1772899] == [string_hash(text) for text in ("", "a", "abc", "😀")]
    assert 3076010 == string_hash("data")


def test_settings_come_in_the_order_kafka_prints_them():
    """Is it the order in which Kafka 4.3.1's kafka-topics listed a topic's settings, two of which share a bucket?"""
    fillers = [f"filler{number}" for number in range(30)]

    for names in (["segment.bytes", "retention.ms"], ["retention.ms", "segment.bytes"]):
        listed = hash_order([*names, "min.insync.replicas", *fillers])
        assert ["min.insync.replicas", *names] == [name for name in listed if name not in fillers]


def test_partitions_come_in_the_order_kafka_prints_them():
    """Is it the order in which kafka-leader-election listed these partitions?"""
    assert [("zeta", 0), ("d1", 2), ("d1", 0)] == partition_order([("d1", 0), ("d1", 2), ("zeta", 0)])


def test_a_small_table_grows():
    """Does a table that begins small have room for all, and does nothing get lost?"""
    names = [f"topic-{number}" for number in range(50)]

    assert sorted(names) == sorted(hash_order(names, table=1))
    assert hash_order([], table=0) == []


def test_partitions_that_share_a_bucket():
    """Do partitions whose hashes meet come in the order of the tasks that read them, as Kafka's tool shows them?"""
    made = "test_streams_groups_are_shown_alike-59-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"
    tasks = [("topic-60", 0), ("topic-60", 1), (made, 0), (made, 1)]

    assert partition_order(result_order(tasks)) == [("topic-60", 1), (made, 1), ("topic-60", 0), (made, 0)]
