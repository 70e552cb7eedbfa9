"""REST v2 while a partition's leader dies."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.gateway.rest_v2 import DEADLINE_S, new_instance, produce, read, subscribe

from gateway.streaming import until_known
from headrace.client.admin import KafkaAdmin
from headrace.client.admin_values import NewTopic
from headrace.testing.cluster import Cluster
from headrace.testing.gateway_thread import GatewayThread


@pytest.mark.slow
def test_the_leader_dies():
    """Are records stored after it, and do a read that waits and an instance get them, each once?"""
    with (
        Cluster(brokers=3) as cluster,
        GatewayThread(cluster.bootstrap) as gateway,
        httpx.Client(base_url=gateway.url, timeout=2 * DEADLINE_S) as http,
        ThreadPoolExecutor(1) as reader,
    ):
        with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", num_partitions=1, replication_factor=3)])
        until_known(cluster, "orders")
        produce(http, "/topics/orders", {"value": 1})
        instance = new_instance(http, format="json")
        subscribe(http, instance, "orders")
        assert [record["value"] for record in read(http, instance, 1)] == [1]
        waiting = reader.submit(http.get, "/topics/orders/partitions/0/records?offset=1&timeout=25000")
        cluster.kill(http.get("/topics/orders/partitions/0").json()["leader"])
        produce(http, "/topics/orders", {"value": 2})

        assert [record["value"] for record in waiting.result(DEADLINE_S).json()["records"]] == [2]
        assert [record["value"] for record in read(http, instance, 1)] == [2]
        assert http.get(f"{instance}/records?timeout=0").json() == []
