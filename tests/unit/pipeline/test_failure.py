"""One sentence out of what Spark says."""

import pytest

from headrace.pipeline.failure import is_absence, is_death, remedy_of, sentence_of, sql_line, text_of, trace_of
from headrace.spark.offsets import data_lost

SOURCE = """\
[STREAM_FAILED] Query [id = 7, runId = 8] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] \
Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "/x/python_streaming_source_runner.py", line 1, in main
    raise NoBroker("Nothing")
headrace.client.fault.NoBroker: Nothing answers at localhost:9092. Is the broker running?
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
"""
TASK = """\
Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 (TID 3): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "alerts.py", line 3, in detect
    1 / 0
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handle(PythonRunner.scala:1)
Caused by: java.lang.RuntimeException: other: words
"""
DRIVER = """\
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/x/site-packages/py4j/protocol.py", line 327, in get_return_value
    raise Py4JJavaError(
py4j.protocol.Py4JJavaError: An error occurred while calling o2208.jdbc.
: java.sql.SQLException: No suitable driver
\tat java.sql/java.sql.DriverManager.getDriver(DriverManager.java:300)
"""
DEATH = """\
Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times, most recent failure: Lost task 0.0: \
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting something.
Caused by: java.io.EOFException
"""
COLUMN = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `lta` cannot be resolved. \
Did you mean one of the following? [`lat`, `lon`]. SQLSTATE: 42703; line 2 pos 7;
'Project ['lta]
"""


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("Nothing answers at localhost:9092. Is the broker running?", SOURCE),
        ("ZeroDivisionError: division by zero (alerts.py, line 3, in detect).", TASK),
        (
            COLUMN[: COLUMN.index(" SQLSTATE")].split("] ", 1)[1],
            COLUMN,
        ),
        ("It broke.", "It broke"),
        ("SQLException: No suitable driver.", DRIVER),
        ("A Python process of Spark died in the middle of its work.", DEATH),
        ("Parent path is not a directory.", "Writing job failed.\norg.x.IOException: Parent path is not a directory"),
        ("Writing job failed.", "Writing job failed."),
        (
            "It is not there.",
            "An error occurred while calling o57.load.\n: org.x.Y: [NOT] It is not there. SQLSTATE: 1",
        ),
        ("Two lines.", "Two lines\nof text"),
    ],
)
def test_one_sentence(expected, text):
    """Is the cause found among traces and codes?"""
    assert sentence_of(text) == expected


def test_long_sentences_are_cut():
    """Is a message without an end cut?"""
    assert len(sentence_of("word " * 1000)) == 500


def test_only_absence_is_waited_for():
    """Is a broker that does not answer told from anything else that fails?"""
    assert is_absence(SOURCE)
    assert not is_absence(TASK)
    assert not is_absence(SOURCE.replace("NoBroker:", "BadOption:"))


def test_the_line_of_a_statement():
    """Is the line of a statement found that Spark complains about?"""
    assert (sql_line(COLUMN), sql_line("no line")) == (2, 1)


class Captured(Exception):
    """An exception as pyspark keeps those of the JVM."""

    def __init__(self, said, trace, cause=None):
        super().__init__(said)
        self._desc, self._stackTrace, self._cause = said, trace, cause


def test_causes():
    """Is the cause told that Spark keeps behind "Writing job failed", and is all of it there for who asks?"""
    cause = Captured(TASK, "org.x.PythonException: Traceback\n\tat org.x.Runner")
    error = Captured("Writing job failed.", "org.x.SparkException\n\tat org.x.Writer", cause)

    assert "ZeroDivisionError: division by zero (alerts.py, line 3, in detect)." == sentence_of(text_of(error))
    assert all(part in str(trace_of(error)) for part in ("org.x.Writer", "org.x.Runner"))


def test_causes_of_python():
    """Are Python's own causes followed too, and a circle of them not for ever?"""
    error = ValueError("Task failed while writing rows")
    error.__cause__ = OSError("No space left on device")
    error.__cause__.__cause__ = error

    assert "No space left on device." == sentence_of(text_of(error))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (SOURCE, ""),
        (DRIVER, "Name the driver's jar as 'spark.jars' below [pipeline.spark]."),
        ("java.lang.OutOfMemoryError: Java heap space", "Set 'spark.driver.memory' below [pipeline.spark]."),
        (TASK, "-v shows all that Spark says."),
    ],
)
def test_remedies(text, remedy):
    """Is it said what to do, where our own sentence does not say it yet?"""
    assert remedy == remedy_of(text)


def test_deaths():
    """Is a worker that was killed told from code that failed?"""
    assert is_death(DEATH)
    assert not is_death(TASK)


def test_options_are_the_keys_of_the_file():
    """Does advice to set an option of the data source name the key that a pipeline's file has for it?"""
    lost = data_lost(["the topic 'lines' is gone"])
    said = sentence_of(f"Traceback (most recent call last):\n{type(lost).__module__}.DataLost: {lost}")

    assert "failOnDataLoss" not in said
    assert "set fail_on_data_loss = false below its [source.NAME] and start again" in said
