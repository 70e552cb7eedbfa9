"""kafka-configs: show and change settings of topics, brokers, groups, client metrics, users, clients and addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headrace.cli.addresses import BOOTSTRAP_CONTROLLER, ZOOKEEPER, settle_address
from headrace.cli.configs_entity import DEFAULT_FLAGS, FLAGS, PLAIN_ENTITIES, Entity, entity_of
from headrace.cli.session import Failure, describe, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, Values, exactly_one, not_together
from headrace.model.errors import HeadraceError, KafkaError
from headrace.settings.properties import load_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

# A comma or an equals sign that is not inside square brackets.
_OUTSIDE = r"(?=[^\]]*(?:\[|$))"

TOOL = Tool(
    name="kafka-configs",
    summary="This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, "
    "client-metrics or group",
    options=(
        BOOTSTRAP,
        BOOTSTRAP_CONTROLLER,
        COMMAND_CONFIG,
        ZOOKEEPER,
        Option(name="zk-tls-config-file", argument="file", help="", is_hidden=True),
        Option(name="alter", help="Alter the configuration for the entity."),
        Option(name="describe", help="List configs for the given entity."),
        Option(name="all", help="List all configs for the given entity, including static configs if available."),
        Option(
            name="entity-type",
            argument="type",
            is_repeatable=True,
            help="Type of entity (topics/clients/users/brokers/broker-loggers/ips/client-metrics/groups)",
        ),
        Option(
            name="entity-name",
            argument="name",
            is_repeatable=True,
            help="Name of entity (topic name/client id/user principal name/broker id/ip/client metrics/group id)",
        ),
        Option(
            name="entity-default",
            is_repeatable=True,
            help="The default of clients, users, brokers or ips, instead of --entity-name.",
        ),
        Option(
            name="add-config",
            argument="key=value,key=[value,value]",
            help="Settings to change. Square brackets hold values with commas together. For users also "
            "SCRAM-SHA-256=[iterations=8192,password=secret].",
        ),
        Option(name="add-config-file", argument="file", help="A properties file with settings to change."),
        Option(name="delete-config", argument="key,key", is_repeatable=True, help="Settings to remove."),
        Option(name="force", help="Suppress console prompts"),
        *(Option(name=name, argument="name", help=f"Short for --entity-type {kind}.") for name, kind in FLAGS.items()),
        *(
            Option(name=name, help=f"Short for --entity-type {kind} --entity-default.")
            for name, kind in DEFAULT_FLAGS.items()
        ),
    ),
    examples=(
        ("See what is set on a topic", "--bootstrap-server localhost:9092 --describe --topic trucks_gps"),
        (
            "Keep its records for an hour",
            "--bootstrap-server localhost:9092 --alter --topic trucks_gps --add-config retention.ms=3600000",
        ),
        (
            "Back to the default",
            "--bootstrap-server localhost:9092 --alter --topic trucks_gps --delete-config retention.ms",
        ),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""

    async def work(session: Session) -> int:
        try:
            return await _run(session)
        except Failure:
            raise
        except HeadraceError as error:
            raise _refused(error, arguments) from error

    return run_tool(TOOL, arguments, program, work, check=_check)


def _refused(error: HeadraceError, arguments: Sequence[str]) -> Failure:
    """What a broker refused is told by Kafka's tool with everything that was typed."""
    words = describe(error)
    if isinstance(error, KafkaError):
        from headrace.cli.java_words import exception

        words = exception(error.code, error.message)
    typed = " ".join(_without_secrets(arguments))
    return Failure(
        f"Error while executing config command with args '{typed}'\n{words}", remedy=getattr(error, "remedy", "")
    )


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments without passwords, which must not end in a log."""
    return [re.sub(r"(password=)[^\],]*", r"\1***", text) for text in arguments]


# --- what goes together


def _check(values: Values) -> None:
    action = exactly_one(values, ("alter", "describe"), "Command must include exactly one action: --describe, --alter")
    if action == "describe":
        not_together(values, "describe", ["add-config", "delete-config"])
    entity_of(values)  # which says what is wrong with it
    if action == "alter":
        if values.has("add-config") and values.has("add-config-file"):
            raise Failure("Only one of --add-config or --add-config-file must be specified")
        if not any(values.has(name) for name in ("add-config", "add-config-file", "delete-config")):
            raise Failure(
                "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
            )


def added(values: Values) -> dict[str, str]:
    """The settings to change, by name."""
    found: dict[str, str] = {}
    path = values.get("add-config-file")
    if path is not None:
        found |= load_properties(path)
    text = values.get("add-config")
    if text is not None:
        for part in re.split("," + _OUTSIDE, text):
            pair = re.split(r"\s*=\s*" + _OUTSIDE, part)
            if len(pair) != 2:
                raise Failure(
                    "requirement failed: Invalid entity config: all configs to be added must be in the format "
                    '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
                )
            found[pair[0].strip()] = re.sub(r"\[?\]?", "", pair[1]).strip()
    return found


def deleted(values: Values) -> list[str]:
    """The names of settings to remove."""
    return [name.strip() for text in values.all("delete-config") for name in text.split(",")]


# --- the actions


async def _run(session: Session) -> int:
    values = session.values
    settle_address(session, "Either --bootstrap-server or --bootstrap-controller must be specified.")
    entity = entity_of(values)
    if entity.kinds[0] in PLAIN_ENTITIES:
        from headrace.cli import configs_resources as resources

        if values.has("describe"):
            return await resources.show(session, entity)
        await resources.change(session, entity, added(values), deleted(values))
    else:
        from headrace.cli import configs_clients as clients

        if values.has("describe"):
            return await clients.show(session, entity)
        await clients.change(session, entity, added(values), deleted(values))
    _tell_change(session, entity)
    return 0


def _tell_change(session: Session, entity: Entity) -> None:
    kind, name = entity.kinds[0], entity.names[0]
    if name:
        session.report.line(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        session.report.line(f"Completed updating default config for {kind} in the cluster.")
    session.report.data(
        {
            "entity": [
                {"type": one, "name": called or None} for one, called in zip(entity.kinds, entity.names, strict=True)
            ],
            "set": sorted(added(session.values)),
            "deleted": deleted(session.values),
        }
    )
