"""REST v2 over HTTPS."""

import ssl

import httpx
from tests.gateway.rest_v2 import V2, new_topic, produce, read, subscribe

from certificates import Authority
from headrace.testing.gateway_thread import GatewayThread


def test_one_request_one_response(broker, tmp_path):
    """Are records stored and read over HTTPS, and is an instance found under https? (R29)"""
    authority = Authority(tmp_path / "authority")
    identity = authority.sign("gateway")
    settings = {
        "listeners": "https://127.0.0.1:0",
        "ssl.certfile": str(identity.certificate),
        "ssl.keyfile": str(identity.key),
    }
    topic = new_topic(broker)
    trust = ssl.create_default_context(cafile=str(authority.file))
    with (
        GatewayThread(broker.bootstrap, settings) as gateway,
        httpx.Client(base_url=gateway.url, verify=trust, timeout=30) as http,
    ):
        produce(http, f"/topics/{topic}", {"value": {"n": 1}})
        found = http.get(f"/topics/{topic}/partitions/0/records").json()
        body = {"format": "json", "auto.offset.reset": "earliest"}
        instance = http.post("/consumers/https", headers=V2, json=body).json()["base_uri"]
        subscribe(http, instance, topic)

        assert gateway.url.startswith("https://")
        assert instance.startswith(f"{gateway.url}/consumers/https/instances/")
        assert [record["value"] for record in found["records"]] == [{"n": 1}]
        assert read(http, instance, 1)[0]["value"] == {"n": 1}
