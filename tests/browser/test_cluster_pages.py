"""The pages about brokers, the quorum, transactions and pipelines."""

import time
from math import sin

import msgspec
import pytest

from hanging import leave_hanging
from headrace import ConfigResource, ConfigResourceType, KafkaAdmin, KafkaProducer, NewTopic
from headrace.pipeline.progress import QueryProgress
from wire_client import WireClient

HANGING_PRODUCER = 4711


@pytest.fixture
def admin(broker):
    """An admin client."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as one:
        yield one


def test_brokers(tab, broker, admin):
    """Is every broker there with its address, and does its number lead to its directories and settings?"""
    admin.create_topics([NewTopic("brokers-page", 3, 1)])
    page = tab.open("/brokers")
    assert broker.bootstrap in page.inner_text("main")
    tab.shot("brokers")

    page.click("main .hr-table a")
    page.wait_for_selector("text=Log directories")
    page.fill('input[aria-label="Search settings"]', "log.retention.hours")

    page.wait_for_selector('td:has-text("log.retention.hours")')
    page.fill('input[aria-label="Search replicas"]', "brokers-page")
    page.wait_for_selector('td:has-text("brokers-page-2")')
    tab.shot("broker")


def test_quorum(tab, admin):
    """Are the leader, its epoch and the high watermark there?"""
    page = tab.open("/quorum")
    shown = page.inner_text("main")

    assert f"Node {admin.describe_metadata_quorum().leader_id}" in shown
    assert "leader" in shown
    tab.shot("quorum")


def test_no_pipelines(tab):
    """Does the page say how to begin where no pipeline ever ran?"""
    page = tab.open("/pipelines")

    assert "headrace pipeline run" in page.inner_text("main")


def progress(query, number, **values):
    """A batch of a query, so many seconds before now."""
    wave = sin(number / 31)
    usual = {
        "pipeline": "fleet", "query": query, "batch_id": 300 - number, "time_ms": int((time.time() - number) * 1000),
        "rows": 400, "rows_total": 400 * (300 - number), "rows_per_second": round(400 + 60 * wave + number % 19, 1),
        "lag_records": int(300 + 250 * wave), "lag_ms": int(600 + 500 * wave), "batch_ms": int(420 + 90 * wave),
        "state_rows": 4000, "late_rows": 0, "late_rows_total": 3, "watermark": "2026-11-16T10:00:00Z",
    }  # fmt: skip
    return QueryProgress(**{**usual, **values}).document()


@pytest.fixture
def pipelines(broker, admin):
    """What two queries told of themselves in the last minutes; the topic is gone after it."""
    admin.create_topics([NewTopic("__pipeline_progress", 1, 1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(290, -1, -2):
            for query in ("positions", "alerts"):
                document = progress(query, number)
                producer.send(
                    "__pipeline_progress",
                    msgspec.json.encode(document),
                    key=f"fleet/{query}".encode(),
                    timestamp_ms=document["timeMs"],
                )
        producer.send("__pipeline_progress", b"not a report")
        producer.flush()
        yield producer
    admin.delete_topics(["__pipeline_progress"])


def test_pipelines(tab, pipelines, eventually):
    """Is every query there, does one have a history, and does its next batch appear by itself?"""
    page = tab.open("/pipelines")
    page.wait_for_selector('td:has-text("positions")')
    eventually(lambda: "2 of 2" in page.inner_text("main"))
    tab.shot("pipelines")

    page.click('a:has-text("positions")')
    page.wait_for_selector(".hr-chart polyline")
    tab.shot("pipeline")
    document = progress("positions", 0, batch_id=98765)
    pipelines.send("__pipeline_progress", msgspec.json.encode(document), key=b"fleet/positions").get(10)

    eventually(lambda: "98765" in page.inner_text("main"))


@pytest.fixture
def transaction(broker, admin):
    """A transaction that is open."""
    admin.create_topics([NewTopic("moves", 3, 1)])
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="mover/1")
    producer.begin_transaction()
    producer.send("moves", b"perhaps", partition=2)
    producer.flush()
    yield "mover/1"
    producer.close()
    admin.delete_topics(["moves"])


def test_a_transaction_is_aborted(tab, transaction, admin, eventually):
    """Is an open transaction listed, with its partitions, and is it at rest once a person has typed its name?"""
    page = tab.open("/transactions")
    page.wait_for_selector('td:has-text("Ongoing")')
    tab.shot("transactions")
    page.click('a:has-text("mover/1")')
    page.wait_for_selector("text=moves-2")
    tab.shot("transaction")

    page.click('button:has-text("Abort")')
    button = page.locator('.hr-dialog button:has-text("Abort")')
    assert button.is_disabled()
    page.fill(".hr-dialog input", transaction)
    button.click()

    eventually(lambda: admin.describe_transaction(transaction).started_ms is None)
    eventually(lambda: "moves-2" not in page.inner_text("main"))


@pytest.fixture
def hanging(broker, admin):
    """A transaction that no coordinator knows."""
    admin.create_topics([NewTopic("stuck", 1, 1)])
    name = "transaction.partition.verification.enable"
    admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "", {name: "false"})])
    with WireClient(broker.port) as wire:
        leave_hanging(wire, "stuck", 0, HANGING_PRODUCER)
    admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, "", {name: None})])
    yield
    admin.delete_topics(["stuck"])


@pytest.mark.usefixtures("hanging")
def test_what_hangs_is_aborted(tab, admin):
    """Is a hanging transaction found, and gone from the page when it was aborted there?"""
    page = tab.open("/transactions?hanging=0")
    page.wait_for_selector("text=stuck-0")

    page.click('[aria-label="Abort in stuck-0"]')
    page.fill(".hr-dialog input", "stuck")
    page.click('.hr-dialog button:has-text("Abort")')

    page.wait_for_selector("text=Nothing hangs")
    assert [None] == [one.transaction_start_offset for one in admin.describe_producers([("stuck", 0)])["stuck", 0]]
