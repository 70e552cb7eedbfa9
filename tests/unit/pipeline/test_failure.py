"""One sentence out of what Spark says."""

import pytest

from headrace.pipeline.failure import is_absence, sentence_of, sql_line

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
COLUMN = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `lta` cannot be resolved. \
Did you mean one of the following? [`lat`, `lon`]. SQLSTATE: 42703; line 2 pos 7;
'Project ['lta]
"""


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("Nothing answers at localhost:9092. Is the broker running?", SOURCE),
        ("ZeroDivisionError: division by zero.", TASK),
        (
            COLUMN[: COLUMN.index(" SQLSTATE")].split("] ", 1)[1],
            COLUMN,
        ),
        ("It broke.", "It broke"),
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
