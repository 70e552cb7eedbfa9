"""Publish and subscribe: a service says once what happened; every service that cares hears all of it.

bin/headrace python examples/publish_subscribe.py [bootstrap servers]
"""

import asyncio
import os
import sys

from headrace import AsyncKafkaAdmin, AsyncKafkaConsumer, AsyncKafkaProducer, NewTopic

TOPIC = "orders-placed"
ORDERS = tuple(f"order {number}" for number in range(1, 5))
SERVICES = ("billing", "shipping", "statistics")


async def publish(bootstrap: str) -> None:
    """The shop: it knows the topic, and nothing of those who listen."""
    async with AsyncKafkaProducer(bootstrap_servers=bootstrap, value_serializer="str") as producer:
        for order in ORDERS:
            await producer.send_and_wait(TOPIC, order, key=order.encode())


async def subscribe(bootstrap: str, service: str) -> str:
    """One service: a group of its own, so its place in the topic is its own too."""
    heard = []
    async with AsyncKafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id=service, auto_offset_reset="earliest", value_deserializer="str"
    ) as consumer:
        while len(heard) < len(ORDERS):
            heard.append((await consumer.getone()).value)
    return f"{service} heard {', '.join(sorted(heard))}"


async def main(bootstrap: str) -> None:
    """Two services listen while orders are placed; the third comes later and has missed nothing."""
    async with AsyncKafkaAdmin(bootstrap_servers=bootstrap) as admin:
        if TOPIC not in await admin.list_topics():
            await admin.create_topics([NewTopic(TOPIC, num_partitions=2)])
    *early, late = SERVICES
    heard = await asyncio.gather(*(subscribe(bootstrap, service) for service in early), publish(bootstrap))
    print(*heard[:-1], sep="\n")
    print(await subscribe(bootstrap, late))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")]))
