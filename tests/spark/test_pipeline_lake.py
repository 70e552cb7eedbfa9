"""A lake of Parquet files: batches once, small files merged, crashes harmless."""

import pytest

from headrace.pipeline.lake import JOURNAL, STAGING, Lake, partition_column


@pytest.fixture
def place(tmp_path):
    return tmp_path / "lake"


class Clock:
    def __init__(self):
        self.now_ms = 10**15  # Far after the files' own times.

    def __call__(self):
        return self.now_ms


def frame(spark, *rows):
    return spark.createDataFrame(rows, "day string, number int")


def rows(spark, place):
    return sorted((str(row.day), row.number) for row in spark.read.parquet(str(place)).collect())


def files(place):
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*.parquet"))


def test_a_batch_that_comes_again_replaces_itself(spark, place):
    """After a crash, is the batch that is done again there once?"""
    first = Lake(spark, str(place), partition_by=["day"])
    first.write(frame(spark, ("a", 1), ("b", 2)), 0)
    first.write(frame(spark, ("a", 3)), 1)
    again = Lake(spark, str(place), partition_by=["day"])
    again.write(frame(spark, ("a", 3), ("c", 4)), 1)

    assert rows(spark, place) == [("a", 1), ("a", 3), ("b", 2), ("c", 4)]
    assert len(files(place)) == 4


def test_what_rests_is_merged(spark, place):
    """Are the small files of a partition at rest merged into one, and those of one that is written to left?"""
    clock = Clock()
    lake = Lake(spark, str(place), partition_by=["day"], compact_after_ms=1000, now_ms=clock)
    for batch in range(3):
        lake.write(frame(spark, ("a", batch), ("b", batch)), batch)
    clock.now_ms += 1000
    lake.write(frame(spark, ("b", 3)), 3)

    assert [name.split("/")[0] for name in files(place)] == ["day=a", *["day=b"] * 4]
    assert rows(spark, place) == [*(("a", n) for n in range(3)), *(("b", n) for n in range(4))]
    assert not (place / STAGING).exists()


def test_this_batch_is_not_merged(spark, place):
    """Does a batch that is not certain yet keep its own files, so that it can come again?"""
    clock = Clock()
    lake = Lake(spark, str(place), compact_after_ms=0, now_ms=clock)
    for batch in range(3):
        lake.write(frame(spark, ("a", batch)), batch)
    names = [name for name in files(place) if "batch-000000002" in name]
    again = Lake(spark, str(place), compact_after_ms=None)
    again.write(frame(spark, ("a", 2)), 2)

    assert len(names) >= 1
    assert rows(spark, place) == [("a", 0), ("a", 1), ("a", 2)]


@pytest.mark.parametrize("crash", ["write_text", "move", "delete"])
def test_a_crash_while_merging(spark, place, monkeypatch, crash):
    """Is every row there once, wherever a merge was cut short?"""
    clock = Clock()
    lake = Lake(spark, str(place), partition_by=["day"], compact_after_ms=1000, now_ms=clock)
    for batch in range(3):
        lake.write(frame(spark, ("a", batch)), batch)
    clock.now_ms += 1000
    merge = lake._merge

    def cut_short(*arguments):
        def fail(*_):
            raise ConnectionResetError("cut")

        monkeypatch.setattr(lake._files, crash, fail)
        merge(*arguments)

    monkeypatch.setattr(lake, "_merge", cut_short)
    with pytest.raises(ConnectionResetError):
        lake.write(frame(spark, ("b", 3)), 3)
    Lake(spark, str(place), partition_by=["day"]).write(frame(spark, ("b", 3)), 3)

    assert rows(spark, place) == [("a", 0), ("a", 1), ("a", 2), ("b", 3)]
    assert not (place / JOURNAL).exists()


@pytest.mark.parametrize("partition_by", [[], ["day"]])
def test_an_empty_batch_leaves_no_file(spark, place, partition_by):
    """Is nothing written for a batch without rows?"""
    lake = Lake(spark, str(place), partition_by=partition_by)
    lake.write(frame(spark), 0)
    assert files(place) == []
    lake.write(frame(spark, ("a", 1)), 1)
    assert len(files(place)) >= 1


def test_partitions_by_time(spark):
    """Is `hour(window.start)` a column of that hour in UTC, and a bare name the column itself?"""
    name, column = partition_column("hour(window.start)")
    made = (
        spark.sql("SELECT named_struct('start', TIMESTAMP '2026-11-15 20:30:00') AS window").select(column).first()[0]
    )

    assert (name, made) == ("hour", "2026-11-15-20")
    assert partition_column("region") == ("region", None)
