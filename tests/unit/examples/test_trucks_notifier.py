"""The notifier delivers each alert once."""

import threading
from types import SimpleNamespace

import msgspec
import pytest
from notifier import Journal, notify, poster


class FakeConsumer:
    """Gives its batches, then ends the notifier; a commit is noted with what had been delivered by then."""

    def __init__(self, batches, ended, delivered):
        self._batches = list(batches)
        self._ended = ended
        self._delivered = delivered
        self.commits = []

    def poll(self, timeout_ms, max_records):
        if not self._batches:
            self._ended.set()
            return {}
        ids = self._batches.pop(0)
        return {"alerts": [SimpleNamespace(value=msgspec.json.encode({"alert_id": one})) for one in ids]}

    def commit(self):
        self.commits.append(len(self._delivered))


def run(path, batches, *, fail_at=None):
    """Run the notifier over batches of ids; what it delivered, and its consumer."""
    ended, delivered = threading.Event(), []

    def deliver(alert):
        if alert["alert_id"] == fail_at:
            raise KeyboardInterrupt
        delivered.append(alert["alert_id"])

    consumer = FakeConsumer(batches, ended, delivered)
    journal = Journal(path)
    try:
        notify(consumer, journal, deliver, ended)
    except KeyboardInterrupt:
        pass
    finally:
        journal.close()
    return delivered, consumer


def test_each_alert_once(tmp_path):
    """Is an alert that comes again not delivered again, and is a batch committed after it is delivered?"""
    delivered, consumer = run(tmp_path / "journal", [["a", "b", "a"], ["b", "c"]])

    assert ["a", "b", "c"] == delivered
    assert [2, 3] == consumer.commits


def test_once_across_restarts(tmp_path):
    """Does a notifier that died before it committed repeat nothing, and leave nothing out?"""
    first, _ = run(tmp_path / "journal", [["a", "b", "c"]], fail_at="c")
    second, _ = run(tmp_path / "journal", [["a", "b", "c"]])

    assert (["a", "b"], ["c"]) == (first, second)


def test_torn_line_does_not_count(tmp_path):
    """Is half a line of the journal, as a crash leaves it, no alert that was delivered?"""
    path = tmp_path / "journal"
    path.write_text("a\nbb\nT-1:id")
    journal = Journal(path)
    was_known = "T-1:id" in journal
    journal.add(["T-1:idle:7"])
    journal.close()

    assert "a\nbb\nT-1:idle:7\n" == path.read_text()
    assert not was_known


def test_webhook_needs_an_address():
    """Is a webhook that is no address of the web refused in words?"""
    with pytest.raises(SystemExit, match="begins with http"):
        poster("file:///etc/passwd", threading.Event())
