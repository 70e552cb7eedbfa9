"""The asynchronous clients: one task sends, another answers as records come.

bin/headrace python examples/async_echo.py [bootstrap servers]
"""

import asyncio
import os
import sys

from headrace import AsyncKafkaConsumer, AsyncKafkaProducer

QUESTIONS = ("one", "two", "three")


async def ask(bootstrap: str) -> None:
    """Send the questions, all under way at once."""
    async with AsyncKafkaProducer(bootstrap_servers=bootstrap, value_serializer="str") as producer:
        under_way = [await producer.send("questions", word) for word in QUESTIONS]
        await asyncio.gather(*under_way)


async def answer(bootstrap: str) -> None:
    """Print every question in capitals."""
    async with AsyncKafkaConsumer(
        "questions", bootstrap_servers=bootstrap, auto_offset_reset="earliest", value_deserializer="str"
    ) as consumer:
        for _ in QUESTIONS:
            print((await consumer.getone()).value.upper())


async def main(bootstrap: str) -> None:
    """Ask, then answer; a consumer without a group reads a topic that is there when it starts."""
    await ask(bootstrap)
    await answer(bootstrap)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")]))
