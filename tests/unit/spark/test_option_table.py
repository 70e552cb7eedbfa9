import pytest

from headrace.client.fault import BadOption, ClientFault, UnknownOption
from headrace.spark.option_table import OPTIONS, check_names, sink_options, source_options
from headrace.spark.positions import EARLIEST, LATEST, Kind

WHERE = {"kafka.bootstrap.servers": "one:9092,two:9093"}
READ = {**WHERE, "subscribe": "t"}


def test_defaults():
    """What does a reader go by if it is told no more than where and what?"""
    table, stream = source_options(READ, is_stream=False), source_options(READ, is_stream=True)

    assert (("one", 9092), ("two", 9093)) == table.connection.bootstrap
    assert ("t",) == table.subscription.names
    assert (EARLIEST, LATEST, LATEST) == (table.starting.mark, table.ending.mark, stream.starting.mark)
    assert table.fail_on_data_loss
    assert table.is_committed_only
    assert "binary" == table.value_format
    assert table.offsets_max is table.tasks_max is table.partitions_min is None


def test_names_in_any_case():
    """Are options known in whatever case Spark hands them on?"""
    given = {"KAFKA.Bootstrap.Servers": "one", "SUBSCRIBE": "t", "maxoffsetspertrigger": "7", "FailOnDataLoss": "FALSE"}
    options = source_options(given)

    assert (("one", 9092),) == options.connection.bootstrap
    assert (7, False) == (options.offsets_max, options.fail_on_data_loss)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("subscrib", "Did you mean subscribe?"),
        ("startingoffset", "Did you mean startingOffsets?"),
        ("maxOffsetPerTrigger", "Did you mean maxOffsetsPerTrigger?"),
        ("bootstrap.servers", "Did you mean kafka.bootstrap.servers?"),
        ("sasl.jaas.config", "Did you mean kafka.sasl.jaas.config?"),
        ("kafka.sasl.jaas.conf", "Did you mean kafka.sasl.jaas.config?"),
        ("kafka.isolation.levels", "Did you mean kafka.isolation.level?"),
    ],
)
def test_unknown_names(name, hint):
    """Does a name nobody knows get the nearest one that is known?"""
    with pytest.raises(UnknownOption) as refusal:
        check_names({name: "x"})

    assert hint == refusal.value.remedy


def test_options_of_the_other_side():
    """Is an option for writing refused for reading, and the other way round?"""
    with pytest.raises(UnknownOption, match="exactlyOnce is no option for reading"):
        source_options({**READ, "exactlyOnce": "true"})
    with pytest.raises(UnknownOption, match="subscribe is no option for writing"):
        sink_options(READ)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger=0 is not a number above 0"),
        ({"maxOffsetsPerTrigger": "-1"}, "is not a number above 0"),
        ({"minPartitions": "²"}, "is not a number above 0"),
        ({"dropRepeatsWithin": "100001"}, "dropRepeatsWithin=100001 is more than 100000"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss=no is neither true nor false"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay=soon is not a duration"),
        ({"maxTriggerDelay": "5 fortnights"}, "is not a duration"),
        ({"kafka.isolation.level": "read_all"}, "kafka.isolation.level=read_all is unknown"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "minOffsetsPerTrigger=9 is above"),
        ({"minPartitions": "9", "maxTasks": "8"}, "minPartitions=9 is above maxTasks=8"),
        ({"assign": '{"t":[0]}'}, "More than one of subscribe"),
        ({"subscribe": " , "}, "subscribe names no topic"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit cannot be set here"),
    ],
)
def test_bad_values(options, sentence):
    """Is a value that cannot be refused in a sentence?"""
    with pytest.raises(BadOption, match=sentence):
        source_options({**READ, **options})


def test_what_is_missing():
    """Are a reader without a broker or a topic, and a writer without a broker, told so?"""
    with pytest.raises(ClientFault, match=r"kafka\.bootstrap\.servers is missing"):
        source_options({"subscribe": "t"})
    with pytest.raises(BadOption, match="No topic is given"):
        source_options(WHERE)
    with pytest.raises(ClientFault, match=r"kafka\.bootstrap\.servers is missing"):
        sink_options({"topic": "t"})


def test_tables_and_streams():
    """Is what makes no sense for a table or a stream refused, but not before it is known which it is?"""
    with pytest.raises(BadOption, match="endingOffsets cannot be set for a stream"):
        source_options({**READ, "endingOffsets": "latest"}, is_stream=True)
    with pytest.raises(BadOption, match="reads nothing in a batch"):
        source_options({**READ, "startingOffsets": "latest"}, is_stream=False)
    source_options({**READ, "startingOffsets": "latest", "endingOffsets": "latest"})


def test_precedence_of_starts():
    """Does a time count more than times, and those more than offsets, as with the connector?"""
    given = {
        **READ,
        "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": '{"t":{"0":5}}',
        "startingTimestamp": "7",
    }

    assert Kind.TIMESTAMP is source_options(given).starting.kind
    del given["startingTimestamp"]
    assert Kind.TIMESTAMPS is source_options(given).starting.kind


def test_durations():
    """Are durations read in Spark's units?"""
    read = {text: source_options({**READ, "maxTriggerDelay": text}).trigger_delay_max_ms for text in _DURATIONS}

    assert _DURATIONS == read


_DURATIONS = {"250": 250, "250ms": 250, "3s": 3000, "15m": 900_000, "2 min": 120_000, "1h": 3_600_000, "1d": 86_400_000}


def test_credentials():
    """Do properties after `kafka.` reach the connection?"""
    options = source_options(
        {
            **READ,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": 'x required username="me" password="secret";',
            "kafka.client.id": "trucks",
        }
    ).connection

    assert ("SASL_SSL", "SCRAM-SHA-512", "me", "secret", "trucks") == (
        options.security_protocol,
        options.sasl_mechanism,
        options.sasl_username,
        options.sasl_password,
        options.client_id,
    )


def test_connector_options_are_known():
    """Is every option of Spark's connector known here?"""
    theirs = [
        "assign",
        "subscribe",
        "subscribePattern",
        "startingOffsets",
        "startingTimestamp",
        "startingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
        "endingOffsets",
        "endingTimestamp",
        "endingOffsetsByTimestamp",
        "failOnDataLoss",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "minPartitions",
        "maxRecordsPerPartition",
        "groupIdPrefix",
        "includeHeaders",
        "topic",
    ]

    assert [] == [name for name in theirs if name.lower() not in OPTIONS]
