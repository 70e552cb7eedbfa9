"""Records that are gone under a query: it fails with a sentence and goes on later, or at once, as it was told."""

import pytest

EARLIEST = {"startingOffsets": "earliest"}
TELL = "set failOnDataLoss=false and start again from the same checkpoint"


def values(rows):
    return sorted(bytes(row.value) for row in rows)


def numbered(first, last):
    return [b"%06d" % number for number in range(first, last)]


def test_deleted_topic(stream, topics, topic):
    """Does a running query fail when its topic is deleted, and go on with the others if that is allowed?"""
    first, second = topics.create(f"{topic}.a"), topics.create(f"{topic}.b")
    topics.send(first, numbered(0, 3))
    topics.send(second, numbered(3, 6))
    query = stream(f"{first},{second}", **EARLIEST)
    query.start()
    query.wait_for(6)
    topics.delete(first)

    said = query.wait_for_failure()
    assert f"Data is lost: {first}-0 is gone; it was read up to 3" in said
    assert TELL in said
    topics.send(second, numbered(6, 8))
    query.options["failOnDataLoss"] = "false"
    assert numbered(6, 8) == values(query.run())


def test_topic_created_again(stream, topics, topic):
    """Is a topic that was deleted and created again a loss, and read from its beginning if that is allowed?"""
    topics.create(topic)
    topics.send(topic, numbered(0, 5))
    query = stream(topic, **EARLIEST)
    query.run()
    topics.delete(topic)
    topics.create(topic)
    topics.send(topic, numbered(10, 12))

    with pytest.raises(Exception, match=f"{topic}-0 ends at 2, but was read up to 5"):
        query.run()
    query.options["failOnDataLoss"] = "false"
    assert numbered(10, 12) == values(query.run())
    assert [] == query.run()


def test_records_that_retention_took(stream, topics, topic):
    """Is it a loss if records went before they were read, and are the others read if that is allowed?"""
    topics.create(topic, 2)
    topics.send(topic, numbered(0, 10), partition=0)
    topics.send(topic, numbered(10, 20), partition=1)
    query = stream(topic, **EARLIEST)
    query.run()
    topics.send(topic, numbered(20, 30), partition=0)
    topics.send(topic, numbered(30, 40), partition=1)
    topics.delete_records(topic, 15, partition=0)

    with pytest.raises(Exception, match=f"Data is lost: {topic}-0 .*it begins at 15") as failure:
        query.run()
    assert TELL in str(failure.value)
    query.options["failOnDataLoss"] = "false"
    assert sorted(numbered(25, 30) + numbered(30, 40)) == values(query.run())


def test_batch_that_is_gone_when_it_is_run_again(stream, topics, topic):
    """Can a query that failed in a batch whose records are all gone by now, go on with what there is?"""
    topics.create(topic)
    topics.send(topic, numbered(0, 10))
    query = stream(topic, **EARLIEST)
    query.fail_in = {0}
    with pytest.raises(Exception, match="was told to fail"):
        query.run()
    topics.send(topic, numbered(10, 20))
    topics.delete_records(topic, 12)
    # Where it begins is asked anew, but the batch ends where it did.
    query.options["failOnDataLoss"] = "false"

    assert numbered(12, 20) == values(query.run())


def test_new_partition_that_begins_late(stream, topics, topic):
    """Is it a loss if the first records of a topic that appeared went before they were seen?"""
    first = topics.create(f"{topic}.a")
    topics.send(first, numbered(0, 2))
    query = stream(subscribePattern=f"{topic}\\..*", **EARLIEST)
    query.run()
    second = topics.create(f"{topic}.b")
    topics.send(second, numbered(2, 9))
    topics.delete_records(second, 4)

    with pytest.raises(Exception, match=f"{second}-0 is new, but begins at 4"):
        query.run()
    query.options["failOnDataLoss"] = "false"
    assert numbered(6, 9) == values(query.run())
