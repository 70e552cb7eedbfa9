"""Why a query failed, in one sentence, out of what Spark says in a hundred lines."""

from __future__ import annotations

import re

_PYTHON = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*): (.+)$", re.MULTILINE)
_PLACE = re.compile(r'^ *File "([^"]+)", line (\d+), in (\S+)$', re.MULTILINE)
_CODE = re.compile(r"\[[A-Z][A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_ROUND = re.compile(r"^Query \[id = [^]]*\] terminated with exception:\s*")
_CALL = re.compile(r"^An error occurred while calling \S+\n: [\w.$]+: ")
_JAVA = re.compile(r"^(?:[\w$]+\.)+[\w$]+: ")
_FROM_JAVA = re.compile(r"Py4JJavaError: An error occurred while calling \S+\n: (?:[\w$]+\.)*([\w$]+): (.+)")
_POSITION = re.compile(r"line (\d+),? pos(?:ition)? \d+")
_WRAPPER = re.compile(
    r"Writing job (failed|aborted)|(Write )?[Jj]ob aborted|Task failed|Exception thrown in awaitResult"
    r"|Failed to execute|Boxed (Exception|Error)|null$"
)
"""What Spark says around a cause; it says nothing of the cause itself."""
_ABSENCE = ("NoBroker", "TimedOut", "ConnectionEnded")
_OURS = re.compile(r"headrace\.[\w.]+\.([A-Za-z_]\w*): (.+)")
_BUSY = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, and has no setting for it."""
_DEATHS = re.compile(r"Python worker exited unexpectedly|Python worker .*crashed|PYTHON_WORKER_CRASHED")
_DEATH = "A Python process of Spark died in the middle of its work."
_KEYS = {"failOnDataLoss=false": "fail_on_data_loss = false below its [source.NAME]"}
"""What our own sentences advise as an option of the data source, as a pipeline's file says it."""
_LENGTH_MAX = 500
_CAUSES_MAX = 32

_REMEDIES = (
    (_DEATHS, "If memory ran out, set max_records_per_batch of the source, or a smaller local[N] with --master."),
    (
        re.compile("No suitable driver|ClassNotFoundException"),
        "Name the driver's jar as 'spark.jars' below [pipeline.spark].",
    ),
    (
        re.compile("OutOfMemoryError|Java heap space"),
        "Set 'spark.driver.memory' below [pipeline.spark].",
    ),
    (re.compile("Permission denied|AccessDenied|[Rr]ead-only file|not a directory"), "Is the place one to write to?"),
    (re.compile("No space left"), "Make room on the disk."),
    (
        re.compile("ModuleNotFoundError|No module named"),
        "Install it for Spark's Python, or put it beside the file.",
    ),
)
"""What to do where that can be said, by what stands in the cause."""
_REMEDY = "-v shows all that Spark says."


class SparkTrace(Exception):
    """Everything Spark and Python said about a failure, for those who ask."""


def text_of(error: BaseException) -> str:
    """What an error and its causes say, the outermost first: Spark's first words are often only that a job failed."""
    return "\n".join(said for said, _ in _chain(error))


def trace_of(error: BaseException) -> SparkTrace:
    """The same with all stack traces."""
    return SparkTrace("\n".join(trace or said for said, trace in _chain(error)))


def _chain(error: BaseException) -> list[tuple[str, str]]:
    """The words and the Java stack trace of an error and of its causes, as pyspark keeps them."""
    found: list[tuple[str, str]] = []
    current: BaseException | None = error
    while current is not None and len(found) < _CAUSES_MAX:
        said = getattr(current, "_desc", None)
        found.append((str(current) if said is None else said, getattr(current, "_stackTrace", None) or ""))
        current = getattr(current, "_cause", None) or current.__cause__
    return found


def sentence_of(text: str) -> str:
    """What went wrong: our own words if a part of Headrace failed, else Python's last word, else Spark's."""
    ours = _OURS.findall(text)
    if ours:
        return _sentence(_with_keys(ours[-1][1]))
    if _DEATHS.search(text):
        return _DEATH
    from_java = _FROM_JAVA.findall(text)
    if from_java:
        return _sentence(": ".join(from_java[-1]))
    start = text.rfind("Traceback (most recent call last)")
    trace = _before_java(text[start:]) if start >= 0 else ""
    found = _PYTHON.findall(trace)
    if found:
        name, message = found[-1]
        return _sentence(f"{name}: {message}{_place(trace)}")
    return _spark_sentence(text)


def _with_keys(text: str) -> str:
    """Our own words with the keys of a pipeline's file in place of the data source's options."""
    for option, key in _KEYS.items():
        text = text.replace(option, key)
    return text


def remedy_of(text: str) -> str:
    """What to do about it; nothing where our own words say it already."""
    if _OURS.search(text):
        return ""
    return next((remedy for sign, remedy in _REMEDIES if sign.search(text)), _REMEDY)


def _place(trace: str) -> str:
    """Where in the user's own code it happened."""
    places = [found for found in _PLACE.findall(trace) if "site-packages" not in found[0]]
    if not places:
        return ""
    file, line, function = places[-1]
    return f" ({file.rsplit('/', 1)[-1]}, line {line}, in {function})"


def _spark_sentence(text: str) -> str:
    """Spark's first words that are more than a wrapper round those of its cause."""
    lines = [_JAVA.sub("", _ROUND.sub("", _CODE.sub("", line))) for line in _CALL.sub("", text.strip()).split("\n")]
    said = [line for line in lines if line.strip() and not line.startswith((" ", "\t"))]
    return _sentence(next((line for line in said if not _WRAPPER.match(line)), lines[0]))


def is_absence(text: str) -> bool:
    """Whether a query failed because no broker answered: then waiting helps."""
    ours = _OURS.findall(text)
    return bool(ours) and ours[-1][0] in _ABSENCE


def is_passing(text: str) -> bool:
    """Whether a query failed for a reason that passes: no broker, or a machine too busy to start Python in time."""
    return is_absence(text) or _BUSY in text


def is_death(text: str) -> bool:
    """Whether a query failed because one of its Python processes was killed, or killed itself."""
    return _DEATHS.search(text) is not None and not _OURS.search(text)


def sql_line(text: str) -> int:
    """The line of a statement that Spark complains about, counted from 1."""
    found = _POSITION.search(text)
    return int(found[1]) if found else 1


def _before_java(text: str) -> str:
    """A Python traceback without the Java frames below it."""
    return re.split(r"\n\s+at [\w$.]+\(|\n\tat ", text, maxsplit=1)[0]


def _sentence(text: str) -> str:
    text = " ".join(_STATE.sub("", text).split())
    if len(text) > _LENGTH_MAX:
        text = text[: _LENGTH_MAX - 1] + "…"
    return text if text.endswith((".", "!", "?", "…")) else text + "."
