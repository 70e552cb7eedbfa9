"""Messaging: a request goes out, its reply comes back, and any number of requests may be under way.

bin/headrace python examples/request_reply.py [bootstrap servers]
"""

import os
import sys
from itertools import islice
from threading import Thread
from uuid import uuid4

from headrace import KafkaAdmin, KafkaConsumer, KafkaProducer, NewTopic

REQUESTS, REPLIES = "price-requests", "price-replies"
PRICES = {"nails": 3, "hammer": 12, "ladder": 80}


def answer_requests(bootstrap: str, count: int) -> None:
    """The service: replies to the topic that a request names, with the request's own number."""
    with (
        KafkaConsumer(
            REQUESTS,
            bootstrap_servers=bootstrap,
            group_id="price-service",  # start more of them, and they share the requests
            auto_offset_reset="earliest",
            value_deserializer="str",
        ) as requests,
        KafkaProducer(bootstrap_servers=bootstrap, value_serializer="json") as producer,
    ):
        for request in islice(requests, count):
            sent = dict(request.headers)
            producer.send(sent.pop("reply-to").decode(), PRICES.get(request.value), headers=list(sent.items()))


def main(bootstrap: str) -> None:
    """Ask for three prices at once and match the replies by their numbers."""
    questions = {uuid4().bytes: thing for thing in ("ladder", "nails", "elephant")}
    with KafkaAdmin(bootstrap_servers=bootstrap) as admin:
        missing = {REQUESTS, REPLIES} - set(admin.list_topics())
        admin.create_topics([NewTopic(topic, num_partitions=1) for topic in missing])
    service = Thread(target=answer_requests, args=(bootstrap, len(questions)))
    service.start()

    with KafkaProducer(bootstrap_servers=bootstrap, value_serializer="str") as producer:
        for number, thing in questions.items():
            producer.send(REQUESTS, thing, headers=[("correlation-id", number), ("reply-to", REPLIES.encode())])
    with KafkaConsumer(
        REPLIES, bootstrap_servers=bootstrap, auto_offset_reset="earliest", value_deserializer="json"
    ) as replies:
        while questions:
            reply = next(replies)
            thing = questions.pop(dict(reply.headers)["correlation-id"], None)
            if thing is not None:  # otherwise it is the reply to somebody else
                print(f"{thing}: {'not for sale' if reply.value is None else reply.value}")
    service.join()


if __name__ == "__main__":
    main(*sys.argv[1:] or [os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", "localhost:9092")])
