"""What DescribeConfigs answers: every setting with its value, where that comes from, and what stands behind it.

The chain of synonyms is Kafka's (ConfigHelper): layer by layer, strongest first, in each layer the setting and
then its fallbacks; what comes before the setting's own first mention is dropped. So a topic's `retention.ms` that
follows `log.retention.hours` alone has an empty chain and counts as a default, as it does in Kafka.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.settings.broker import BrokerConfig, Source
from headrace.settings.catalog import BROKER_SETTINGS, find_broker_setting
from headrace.settings.group import GROUP_SETTINGS, resolve_group_values
from headrace.settings.setting import Setting
from headrace.settings.topic import TOPIC_SETTINGS, resolve_topic_values


class Synonym(NamedTuple):
    """One place a value could have come from; the first of a chain is the one it did come from."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One setting as DescribeConfigs shows it."""

    name: str
    value: str | None
    read_only: bool
    is_sensitive: bool
    source: int
    synonyms: tuple[Synonym, ...]
    config_type: int
    documentation: str


def describe_topic(overrides: Mapping[str, str], config: BrokerConfig) -> list[ConfigEntry]:
    """Every setting of a topic with these overrides, by name."""
    values = resolve_topic_values(overrides, config)
    entries = []
    for name, setting in sorted(TOPIC_SETTINGS.items()):
        if setting.hidden and name not in overrides:
            continue
        value = setting.format(values[name])
        chain = _chain(setting.synonyms[0].name, config) if setting.synonyms else ()
        if name in overrides:
            chain = (Synonym(name, value, Source.TOPIC), *chain)
        entries.append(_entry(setting, value, chain, read_only=False))
    return entries


def describe_group(overrides: Mapping[str, str], config: BrokerConfig) -> list[ConfigEntry]:
    """Every setting of a group with these overrides, by name; any group has them, whether it is there or not."""
    values = resolve_group_values(overrides, config)
    entries = []
    for name, setting in sorted(GROUP_SETTINGS.items()):
        value = setting.format(values[name])
        if setting.synonyms:
            chain = _chain(setting.synonyms[0].name, config)
        else:
            chain = (Synonym(name, setting.format(setting.default), int(Source.DEFAULT)),)
        if name in overrides:
            chain = (Synonym(name, value, Source.GROUP), *chain)
        entries.append(_entry(setting, value, chain, read_only=False))
    return entries


def describe_broker(config: BrokerConfig) -> list[ConfigEntry]:
    """Every setting of this broker, by name; a name nobody knows is shown without its value, which may be secret."""
    shown = {name for name, setting in BROKER_SETTINGS.items() if not setting.hidden}
    return [_describe_name(name, config) for name in sorted(shown.union(config.given()))]


def describe_cluster_default(config: BrokerConfig) -> list[ConfigEntry]:
    """The dynamic settings all brokers share, which is what describing the broker without a name shows."""
    return [_describe_name(name, config, only=Source.DYNAMIC_DEFAULT_BROKER) for name in sorted(config.dynamic_default)]


def _describe_name(name: str, config: BrokerConfig, only: Source | None = None) -> ConfigEntry:
    setting = BROKER_SETTINGS.get(name)
    chain = _chain(name, config)
    if only is not None:
        chain = tuple(synonym for synonym in chain if synonym.source == only)
    if setting is None:
        source = chain[0].source if chain else Source.DEFAULT
        return ConfigEntry(name, None, True, True, source, chain, 0, "")
    value = setting.format(config[name] if only is None else setting.parse(config.dynamic_default[name]))
    return _entry(setting, value, chain, read_only=setting.mode == "read-only")


def _entry(setting: Setting, value: str | None, chain: tuple[Synonym, ...], *, read_only: bool) -> ConfigEntry:
    source = chain[0].source if chain else int(Source.DEFAULT)
    return ConfigEntry(setting.name, value, read_only, setting.sensitive, source, chain, int(setting.kind), setting.doc)


def _chain(name: str, config: BrokerConfig) -> tuple[Synonym, ...]:
    names = [name, *_fallbacks(name)]
    chain = [
        Synonym(each, None if _is_secret(each) else texts[each], int(source))
        for source, texts in config.layers()
        for each in names
        if each in texts
    ]
    chain += _defaults(names)
    while chain and chain[0].name != name:
        chain.pop(0)
    return tuple(chain)


def _fallbacks(name: str) -> list[str]:
    setting = BROKER_SETTINGS.get(name)
    if setting:
        return [fallback.name for fallback in setting.synonyms]
    base = find_broker_setting(name)
    return [base.name] if base else []


def _is_secret(name: str) -> bool:
    setting = BROKER_SETTINGS.get(name)
    return setting is None or setting.sensitive


def _defaults(names: Iterable[str]) -> list[Synonym]:
    found = []
    for name in names:
        setting = BROKER_SETTINGS.get(name)
        if setting and setting.default is not None and not setting.hidden:
            found.append(Synonym(name, setting.format(setting.default), int(Source.DEFAULT)))
    return found
