"""What eyes need: enough contrast, and nothing that is cut off at a phone's width."""

import pytest

from headrace.client.admin import KafkaAdmin
from headrace.client.consumer import KafkaConsumer
from headrace.client.producer import KafkaProducer

_FAINT = """() => {
  const rgba = (text) => { const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a ?? 1]; };
  const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3]));
  const light = (colour) => {
    const [r, g, b] = colour.map((n) => (n /= 255) <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const parents = (element) => element ? [element, ...parents(element.parentElement)] : [];
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest(".q-icon, [disabled]")) continue;
    const line = parents(element);
    const behind = line.map((one) => rgba(getComputedStyle(one).backgroundColor)).reverse()
      .reduce((below, top) => over(top, below), [255, 255, 255]);
    const [r, g, b, a] = rgba(getComputedStyle(element).color);
    const opacity = line.reduce((product, one) => product * getComputedStyle(one).opacity, 1);
    const [x, y] = [light(over([r, g, b, a * opacity], behind)), light(behind)];
    const contrast = Math.max(x, y) / Math.min(x, y);
    if (opacity && contrast < 4.5) faint.push(`${element.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return faint;
}"""
"""The texts on a page whose contrast is below 4.5, which WCAG 2 (AA) wants."""
_PAGES = (
    "/",
    "/topics",
    "/topics/looks",
    "/topics/looks?tab=partitions",
    "/topics/looks?tab=consumers",
    "/topics/looks?tab=configs",
    "/groups",
    "/groups/absent/reset",
    "/transactions",
    "/pipelines",
    "/brokers",
    "/brokers/1",
    "/quorum",
    "/fleet",
    "/api",
)


@pytest.fixture(scope="module", autouse=True)
def _topic(broker):
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics(["looks"])
        with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send("looks", b"{}", key=b"k").get(20)
        yield
        admin.delete_topics(["looks"])


def test_contrast(tab):
    """Is every text on every page easy to read, by day and by night?"""
    faint = {}
    for path in _PAGES:
        page = tab.open(path)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # colours change at once
            page.wait_for_selector(f"body.body--{scheme}")
            faint[path, scheme] = page.evaluate(_FAINT)

    assert {} == {place: found for place, found in faint.items() if found}


def test_nothing_sticks_out_of_a_phone(phone):
    """Does every page fit a phone, with all of a topic's tabs to be seen?"""
    wide = [path for path in _PAGES if phone.open(path).evaluate("document.documentElement.scrollWidth > innerWidth")]
    page = phone.open("/topics/looks")

    assert [] == wide
    assert not page.is_visible(".hr-tabs .q-tabs__arrow")


@pytest.fixture
def long_names(broker):
    """A transaction that was committed and a group with a member, both with names of some length."""
    with (
        KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="billing-run-2026-11") as producer,
        KafkaConsumer("looks", bootstrap_servers=broker.bootstrap, group_id="looks-warehouse-sync") as consumer,
    ):
        with producer.transaction():
            producer.send("looks", b"{}")
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        consumer.commit()
        yield "looks-warehouse-sync"
    with KafkaAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.delete_groups(["looks-warehouse-sync"])


def test_tables_fit_a_phone(phone, long_names):
    """Is no column of a table cut off at a phone's width, however long a name is?"""
    cut = """() => [...document.querySelectorAll(".hr-table .q-table__middle")]
      .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText.slice(0, 60))"""
    pages = (*_PAGES, f"/groups/{long_names}")

    assert {} == {path: found for path in pages if (found := phone.open(path).evaluate(cut))}


def test_old_records_have_their_day(tab, broker):
    """Is the time of a record of another day shown whole, with its date?"""
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("looks", b"old", timestamp_ms=1_600_000_000_000).get(20)
    page = tab.open("/topics/looks?limit=20")
    cell = page.wait_for_selector(".hr-record-time:has-text('2020-09-1')")

    assert cell.evaluate("one => one.scrollWidth <= one.clientWidth")
