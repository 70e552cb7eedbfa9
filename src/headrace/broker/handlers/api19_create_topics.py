"""CreateTopics, key 19.

Versions: 2-7.
Behaviour: every topic stands for itself; those that can be created are, in one write to the metadata log, and when the
answer is sent their partitions accept records. `validate_only` does everything but the write. Counts of -1 take
`num.partitions` and `default.replication.factor`. A request for more than 10,000 partitions is refused as a whole.
Deviations: what was done by a try that its controller could not answer is told as done, not refused as done
already; the timeout is not looked at, as nothing has to reach other brokers; two names in one request that collide
in '.' and '_' are not both created (Kafka creates both).
KIPs: 464 default counts (v4), 525 the settings in the answer (v5), 516 topic ids (v7).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.api import Api, Call
from headrace.broker.topic_defaults import topic_defaults
from headrace.cores.controller import PARTITIONS_PER_REQUEST_MAX, CreatedTopic, NewTopic, create_topics
from headrace.cores.metadata import RESOURCE_TOPIC
from headrace.model.errors import ErrorCode, KafkaError
from headrace.settings.describe import describe_topic
from headrace.settings.topic import validate_topic_overrides
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.broker.broker import Broker
    from headrace.cores.metadata import Topic
    from headrace.settings.broker import BrokerConfig

_CONFIGS_SHOWN_FROM = 5

ConfigsKey = frozenset[tuple[str, str]]


class _Settings:
    """What the settings of this request's topics come to; topics created together mostly share them."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._faults: dict[ConfigsKey, KafkaError | None] = {}
        self._shown: dict[ConfigsKey, tuple[CreatableTopicConfigs, ...]] = {}

    def fault(self, configs: Mapping[str, str]) -> KafkaError | None:
        """Why a topic cannot have these settings."""
        key = frozenset(configs.items())
        if key not in self._faults:
            try:
                validate_topic_overrides(configs, self._config)
                self._faults[key] = None
            except KafkaError as error:
                self._faults[key] = error
        return self._faults[key]

    def shown(self, configs: Mapping[str, str]) -> tuple[CreatableTopicConfigs, ...]:
        """Every setting of a topic with these."""
        key = frozenset(configs.items())
        if key not in self._shown:
            self._shown[key] = tuple(
                CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.is_sensitive,
                )
                for entry in describe_topic(configs, self._config)
            )
        return self._shown[key]


async def handle(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create what can be created."""
    broker = call.broker
    settings = _Settings(broker.config)
    try:
        if len(request.topics) > PARTITIONS_PER_REQUEST_MAX:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of topics per request.")
        wanted = {topic.name: _new_topic(broker, topic, settings) for topic in request.topics}
        results = await broker.controller.run(
            partial(
                create_topics,
                wanted=[wanted[topic.name] for topic in request.topics],
                defaults=topic_defaults(broker.config),
                validate_only=request.validate_only,
            )
        )
    except KafkaError as error:
        broker.refusals.tell("topics_refused", f"topics={len(request.topics)}", error)
        return _refuse_all(request, error)
    broker.refusals.tell_all(
        "topic_refused",
        ((f"topic={name}", one if isinstance(one, KafkaError) else None) for name, one in results.items()),
    )
    return CreateTopicsResponse(
        topics=tuple(
            _refused(name, result)
            if isinstance(result, KafkaError)
            else _created(result, settings.shown(wanted[name].configs) if call.version >= _CONFIGS_SHOWN_FROM else ())
            for name, result in results.items()
        )
    )


def _new_topic(broker: Broker, asked: CreatableTopic, settings: _Settings) -> NewTopic:
    configs = {config.name: config.value for config in asked.configs if config.value is not None}
    missing = [config.name for config in asked.configs if config.value is None]
    fault = (
        KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
        if missing
        else settings.fault(configs)
    )
    return NewTopic(
        name=asked.name,
        topic_id=broker.new_uuid(),
        partitions=asked.num_partitions,
        replication_factor=asked.replication_factor,
        assignments=[(placed.partition_index, placed.broker_ids) for placed in asked.assignments],
        configs=configs,
        config_fault=fault,
    )


def _created(topic: CreatedTopic, configs: tuple[CreatableTopicConfigs, ...]) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def result_of(call: Call, topic: Topic) -> CreatableTopicResult:
    """What is told of a topic that was created, from the metadata that has it."""
    configs = call.broker.metadata.configs(RESOURCE_TOPIC, topic.name)
    made = CreatedTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
    )
    is_shown = call.version >= _CONFIGS_SHOWN_FROM
    return _created(made, _Settings(call.broker.config).shown(configs) if is_shown else ())


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=int(error.code), error_message=error.message or None)


def _refuse_all(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=tuple({t.name: _refused(t.name, error) for t in request.topics}.values()))


API = Api(key=19, low=2, high=7, handle=handle, controller=True, refuse=_refuse_all)
