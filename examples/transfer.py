"""Transactions: read, transform and write, exactly once.

bin/headrace python examples/transfer.py [bootstrap servers]
"""

import os
import sys

from headrace import KafkaConsumer, KafkaProducer, TopicPartition


def main(bootstrap: str) -> None:
    """Copy three orders to invoices; what is read and what is written is committed together."""
    with KafkaProducer(bootstrap_servers=bootstrap, value_serializer="str") as shop:
        for number in range(3):
            shop.send("orders", f"order {number}")

    with (
        KafkaConsumer(
            "orders",
            bootstrap_servers=bootstrap,
            group_id="invoicing",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            value_deserializer="str",
        ) as orders,
        KafkaProducer(bootstrap_servers=bootstrap, transactional_id="invoicing", value_serializer="str") as invoices,
    ):
        for _, order in zip(range(3), orders, strict=False):
            with invoices.transaction():
                invoices.send("invoices", order.value.replace("order", "invoice"))
                place = TopicPartition(order.topic, order.partition)
                invoices.send_offsets_to_transaction({place: order.offset + 1}, orders)

    with KafkaConsumer(
        "invoices",
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        value_deserializer="str",
    ) as invoices:
        for _ in range(3):
            print(next(invoices).value)


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])
