"""Pictures of the pages for the documentation, of a fleet at work; made only when they are asked for."""

import json
import math
import random
import threading
import time

import pytest

from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic
from headrace.client.consumer import KafkaConsumer
from headrace.client.producer import KafkaProducer
from headrace.client.records import TopicPartition

pytestmark = pytest.mark.long
_WARM_UP_S = 40
_TOPICS = {"trucks_gps": 6, "trucks_engine": 3, "trucks_alerts": 1, "orders": 3, "invoices": 1}


@pytest.fixture(scope="module")
def fleet(broker):
    """Trucks that report, readers that keep up and one that does not."""
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=number) for name, number in _TOPICS.items()])
        admin.alter_group_offsets("nightly-report", {TopicPartition("orders", number): 0 for number in range(3)})
        admin.alter_group_offsets("billing", {TopicPartition("invoices", 0): 0})
    stop = threading.Event()
    threads = [
        threading.Thread(target=_report, args=(broker.bootstrap, stop)),
        threading.Thread(target=_read, args=(broker.bootstrap, stop, "map", "trucks_gps")),
        threading.Thread(target=_read, args=(broker.bootstrap, stop, "alerting", "trucks_engine")),
    ]
    for thread in threads:
        thread.start()
    time.sleep(_WARM_UP_S)
    yield
    stop.set()
    for thread in threads:
        thread.join()


def _report(bootstrap, stop):
    chance = random.Random(7)
    began = time.monotonic()
    with KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        while not stop.wait(0.1):
            wave = 1 + math.sin((time.monotonic() - began) / 6)
            for _ in range(int(4 + 10 * wave)):
                truck = f"truck-{chance.randrange(1, 200):03d}"
                report = {
                    "truck": truck,
                    "lat": round(51 + chance.random() * 3, 5),
                    "lon": round(9 + chance.random() * 4, 5),
                    "speed_kmh": round(60 + 35 * chance.random(), 1),
                    "heading": chance.randrange(360),
                    "state": chance.choice(["driving", "driving", "driving", "resting", "loading"]),
                }
                headers = [("source", b"gps"), ("schema", b"3")]
                producer.send("trucks_gps", json.dumps(report).encode(), key=truck.encode(), headers=headers)
                if chance.random() < 0.4:
                    engine = {"truck": truck, "rpm": chance.randrange(900, 2200), "oil_c": chance.randrange(80, 110)}
                    producer.send("trucks_engine", json.dumps(engine).encode(), key=truck.encode())
            if chance.random() < 0.3:
                producer.send("orders", json.dumps({"id": chance.randrange(10**6), "pallets": 3}).encode())
                producer.send("invoices", json.dumps({"id": chance.randrange(10**6), "eur": 120.5}).encode())


def _read(bootstrap, stop, group_id, topic):
    with KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group_id, client_id=f"{group_id}-1", auto_offset_reset="earliest"
    ) as consumer:
        while not stop.is_set():
            consumer.poll(timeout_ms=500, max_records=60 if group_id == "map" else 500)


PAGES = {
    "overview": "/",
    "topics": "/topics",
    "partitions": "/topics/trucks_gps?tab=partitions",
    "consumers": "/topics/trucks_gps?tab=consumers",
    "settings": "/topics/trucks_gps?tab=configs",
    "groups": "/groups",
    "group": "/groups/map",
    "reset": "/groups/nightly-report/reset?to=latest",
}


@pytest.mark.parametrize("name", PAGES)
def test_page(tab, fleet, name):
    """How does the page look?"""
    tab.open(PAGES[name])
    tab.page.wait_for_timeout(1500)
    tab.shot(name)


def test_messages(tab, fleet):
    """How do messages look, with one of them open?"""
    page = tab.open("/topics/trucks_gps?from=last&limit=20&filter=value.speed_kmh%20%3E%2080")
    page.wait_for_selector(".hr-record-line")
    page.locator(".hr-record-line").nth(2).click()
    page.wait_for_selector("pre.hr-value")
    page.wait_for_timeout(500)
    tab.shot("messages")


def test_live(tab, fleet):
    """How does a live view look, in the dark?"""
    page = tab.open("/")
    page.click(".hr-theme")
    page.click(".hr-theme")
    page.wait_for_selector("body.body--dark")
    tab.page.wait_for_timeout(500)
    tab.shot("overview-dark")
    tab.open("/topics/trucks_gps?from=live&partition=0")
    page.wait_for_timeout(2500)
    tab.shot("live-dark")


def test_produce(tab, fleet):
    """How does a dialog look, with the same elsewhere?"""
    page = tab.open("/topics/orders")
    page.click("text=Produce")
    page.fill('input[data-test="key"]', "order-1")
    page.fill('textarea[data-test="value"]', '{"pallets": 3}')
    page.click(".hr-dialog >> text=Do this elsewhere")
    page.wait_for_timeout(800)
    tab.shot("produce")


def test_phone(phone, fleet):
    """How does it look on a phone?"""
    page = phone.open("/")
    page.wait_for_timeout(1000)
    phone.shot("phone-overview")
    phone.open("/topics/trucks_gps?limit=20")
    page.wait_for_selector(".hr-record-line")
    page.wait_for_timeout(500)
    phone.shot("phone-messages")
