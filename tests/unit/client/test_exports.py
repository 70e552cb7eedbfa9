"""The public surface of the package."""

import subprocess
import sys
from pathlib import Path

import pytest

import headrace

CLIENTS = {
    "KafkaAdmin",
    "KafkaConsumer",
    "KafkaProducer",
    "AsyncKafkaAdmin",
    "AsyncKafkaConsumer",
    "AsyncKafkaProducer",
}


def python(*lines: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own."""
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_everything_is_there():
    """Is everything in __all__ there, the clients among it, and known to dir()?"""
    assert set(headrace.__all__) >= CLIENTS
    assert all(getattr(headrace, name) is not None for name in headrace.__all__)
    assert set(headrace.__all__) <= set(dir(headrace))


def test_type_checkers_see_the_same():
    """Does the stub export exactly what the package does?"""
    stub = Path(headrace.__file__).with_suffix(".pyi")
    scope: dict = {}
    exec(compile(stub.read_text(), str(stub), "exec"), scope)

    assert set(scope["__all__"]) == set(headrace.__all__)
    assert all(scope[name] is getattr(headrace, name) for name in headrace.__all__ if name != "__version__")


def test_unknown_name():
    """Is a name that is not there an AttributeError?"""
    with pytest.raises(AttributeError, match="no attribute 'KafkaWriter'"):
        headrace.KafkaWriter  # noqa: B018


def test_importing_is_cheap():
    """Does importing the package, or asking the command for its version, load no client library?"""
    done = python(
        "import sys, headrace",
        "from headrace.cli.main import main",
        "sys.argv = ['headrace', '--version']",
        "try: main()",
        "except SystemExit: pass",
        "print(sorted(name for name in sys.modules if name.startswith(('confluent', 'headrace.client', 'asyncio'))))",
    )

    assert "[]" == done.stdout.splitlines()[-1], done.stderr


def test_missing_library_is_named():
    """Does a missing confluent-kafka give one sentence with the command that helps, and leave the admin usable?"""
    done = python(
        "import sys",
        "sys.modules['confluent_kafka'] = None",
        "from headrace import KafkaAdmin, AsyncKafkaAdmin, NewTopic, TopicPartition",
        "try: from headrace import KafkaProducer",
        "except ImportError as error: print(error)",
    )

    assert (
        "Headrace's producers and consumers need confluent-kafka, which is not installed. "
        "Install it with: pip install 'headrace[client]'\n"
    ) == done.stdout, done.stderr
