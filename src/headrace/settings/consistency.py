"""What settings owe each other: every rule that no single row of the table can say."""

from headrace.settings.fault import ConfigFault
from headrace.settings.topology import Values, read_metrics_address


def check_consistency(values: Values) -> None:
    """ConfigFault if the values, each fine alone, do not go together."""
    _check_ids(values)
    _check_log(values)
    _check_network(values)
    if values["authorizer.class.name"]:
        # Failing closed: a node that was meant to check access must not run open.
        raise ConfigFault(
            "authorizer.class.name asks for access control, which is not served yet",
            "Remove it if everybody may do everything.",
        )


def _check_ids(values: Values) -> None:
    if values["node.id"] != values["broker.id"]:
        raise ConfigFault(
            f"node.id is {values['node.id']} but broker.id is {values['broker.id']}",
            "Set node.id only, or both to the same number.",
        )


def _check_log(values: Values) -> None:
    for name, least in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        if values[name] is not None and values[name] < least:
            raise ConfigFault(f"{name} must be greater than or equal to {least}", "Raise it.")
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if values[name] == 0:
            raise ConfigFault(f"{name} must be unlimited (-1) or greater than 0", "Set it to -1 or a positive number.")
    buffer, threads = values["log.cleaner.dedupe.buffer.size"], values["log.cleaner.threads"]
    if threads and buffer // threads <= 1024 * 1024:
        raise ConfigFault(
            "log.cleaner.dedupe.buffer.size must be more than 1 MiB per cleaner thread",
            "Raise it, or lower log.cleaner.threads.",
        )
    low, high = values["log.cleaner.min.compaction.lag.ms"], values["log.cleaner.max.compaction.lag.ms"]
    if low > high:
        raise ConfigFault(
            f"log.cleaner.min.compaction.lag.ms ({low}) is more than log.cleaner.max.compaction.lag.ms ({high})",
            "Lower the first or raise the second.",
        )


def _check_network(values: Values) -> None:
    queued, frame = values["queued.max.request.bytes"], values["socket.request.max.bytes"]
    if 0 < queued < frame:
        raise ConfigFault(
            f"queued.max.request.bytes ({queued}) is less than socket.request.max.bytes ({frame})",
            "Raise the first or lower the second.",
        )
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        raise ConfigFault(
            "max.connections.per.ip can be zero only if max.connections.per.ip.overrides names exceptions",
            "Raise it, or name the exceptions.",
        )
    read_ip_overrides(values["max.connections.per.ip.overrides"])
    read_metrics_address(values["metrics.listener"])
    idle, delay = values["connections.max.idle.ms"], values["connection.failed.authentication.delay.ms"]
    if 0 <= idle <= delay:
        raise ConfigFault(
            f"connection.failed.authentication.delay.ms ({delay}) must be less than connections.max.idle.ms ({idle})",
            "Raise connections.max.idle.ms.",
        )


def read_ip_overrides(text: str) -> dict[str, int]:
    """The exceptions of `max.connections.per.ip.overrides`, by address."""
    overrides: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        address, _, count = pair.rpartition(":")
        if not address or not count.strip().isdecimal() or len(count) > 10:
            raise ConfigFault(f"Cannot read '{pair}' in max.connections.per.ip.overrides", "Write host:count.")
        overrides[address.strip()] = int(count)
    return overrides
