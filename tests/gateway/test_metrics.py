"""What the gateway counts, over real HTTP."""

from prometheus_text import Metrics


def scraped(http) -> Metrics:
    """What Prometheus sees; it says what it accepts."""
    accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
    answer = http.get("/metrics", headers={"accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Metrics(answer.text)


def test_requests_are_counted(http):
    """Do requests show by route and status, those refused at the door included?"""
    before = scraped(http)
    http.get("/topics")
    http.get("/nothing/at/all")
    http.get("/topics", headers={"host": "evil.example.org"})
    after = scraped(http)

    def more(**labels: str) -> float:
        name = "headrace_gateway_requests_total"
        return (after.get(name, method="GET", **labels) or 0) - (before.get(name, method="GET", **labels) or 0)

    assert more(route="/topics", status="200") >= 1
    assert more(route="none", status="404") >= 1
    assert more(route="none", status="421") >= 1
    assert more(route="/metrics", status="200") >= 1
    assert after.get("headrace_gateway_request_duration_seconds_count", route="/topics") >= 1
    assert after.get("process_resident_memory_bytes") > 0


def test_produced_records_are_counted(gateway, http):
    """Do records that the cluster took and that it refused show as such?"""
    before = scraped(http)

    async def produce() -> None:
        producer = await gateway.gateway.services.producer()
        await producer.send_and_wait("counted", b"v")

    gateway.call(produce())
    after = scraped(http)

    name = "headrace_gateway_produced_records_total"
    assert after.get(name, result="stored") == before.get(name, result="stored") + 1
    assert after.get(name, result="refused") == before.get(name, result="refused")
