"""Limits of users, clients and addresses (quotas), and the SCRAM credentials of users."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from headrace.cli.administration import ask_controller, check
from headrace.cli.configs_entity import CLIENTS, IPS, USERS
from headrace.cli.java_order import bucket_order, hash_order, string_hash
from headrace.cli.session import Failure
from headrace.model.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.cli.configs_entity import Entity
    from headrace.cli.session import Session

DESCRIBE_QUOTAS, ALTER_QUOTAS, DESCRIBE_SCRAM, ALTER_SCRAM = 48, 49, 50, 51
ITERATIONS_DEFAULT, ITERATIONS_MIN = 4096, 4096
SALT_BYTES = 24
EXACT, DEFAULT, ANY = 0, 1, 2

TYPES = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
"""What the protocol calls the kinds."""
SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
"""What Kafka's tool calls them, in the order it shows them."""
MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
CLIENT_QUOTAS = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
IP_QUOTAS = frozenset({"connection_creation_rate"})

Limits = dict[str, float]
Names = dict[str, str | None]


# --- showing


async def show(session: Session, entity: Entity) -> int:
    """Print the limits, and of users the credentials too."""
    documents: list[dict[str, Any]] = []
    for names, limits in await _quotas(session, entity):
        who = ", ".join(
            f"{shown} '{names[kind]}'" if names[kind] is not None else f"the default {shown}"
            for kind, shown in SHOWN.items()
            if kind in names
        )
        values = ", ".join(f"{key}={java_double(limits[key])}" for key in hash_order(limits, table=len(limits)))
        session.report.line(f"Quota configs for {who} are {values}")
        entities = [{"type": kind, "name": name} for kind, name in names.items()]
        documents.append({"entity": entities, "quotas": limits})
    if USERS in entity.kinds and CLIENTS not in entity.kinds and "" not in entity.names:
        documents += await _show_credentials(session, entity.names)
    session.report.data(documents)
    return 0


async def _quotas(session: Session, entity: Entity) -> list[tuple[Names, Limits]]:
    """The limits that fit the entity, in the order Kafka's tool lists them."""
    from headrace.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

    components = []
    for kind, name in zip_longest(entity.kinds, entity.names):
        match_type = ANY if name is None else EXACT if name else DEFAULT
        components.append(ComponentData(entity_type=TYPES[kind], match_type=match_type, match=name or None))
    answer = await session.cluster.ask(
        DESCRIBE_QUOTAS, DescribeClientQuotasRequest(components=tuple(components), strict=True)
    )
    check(answer.error_code, answer.error_message)
    found = []
    for entry in answer.entries or ():
        names = {part.entity_type: part.entity_name for part in entry.entity}
        found.append((_entity_hash(names), (names, {one.key: one.value for one in entry.values})))
    return [pair for _, pair in bucket_order(found, table=max(len(found), 1))]


def _entity_hash(names: Names) -> int:
    """The hash of Kafka's ClientQuotaEntity: that of a map in a list of one."""
    inner = sum(string_hash(kind) ^ (string_hash(name) if name is not None else 0) for kind, name in names.items())
    return (31 + inner) % (1 << 32)


async def _show_credentials(session: Session, users: Sequence[str]) -> list[dict[str, Any]]:
    from headrace.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

    asked = tuple(UserName(name=user) for user in users) or None
    answer = await session.cluster.ask(DESCRIBE_SCRAM, DescribeUserScramCredentialsRequest(users=asked))
    check(answer.error_code, answer.error_message)
    documents = []
    names = {number: name for name, number in MECHANISMS.items()}
    for one in answer.results:
        if one.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if one.error_code:
            from headrace.cli.java_words import ERRORS, sentence

            session.report.line(
                f"Error retrieving SCRAM credential configs for user-principal '{one.user}': "
                f"{ERRORS[one.error_code][0]}: {sentence(one.error_code, one.error_message)}"
            )
            continue
        infos = [(names.get(info.mechanism, "UNKNOWN"), info.iterations) for info in one.credential_infos]
        text = ", ".join(f"{mechanism}=iterations={iterations}" for mechanism, iterations in infos)
        session.report.line(f"SCRAM credential configs for user-principal '{one.user}' are {text}")
        documents.append({"entity": [{"type": "user", "name": one.user}], "scram": dict(infos)})
    return documents


def java_double(value: float) -> str:
    """A number as Java prints a double: with an exponent from ten millions up and from a thousandth down."""
    if value == 0:
        return "0.0"
    sign, digits, exponent = Decimal(repr(float(value))).as_tuple()
    assert isinstance(exponent, int), "a quota is a finite number"
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + exponent
    if -3 <= power < 7:
        return repr(float(value))
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{power}"


# --- changing


async def change(session: Session, entity: Entity, added: dict[str, str], deleted: Sequence[str]) -> None:
    """Set and remove limits, or a user's credentials."""
    allowed = IP_QUOTAS if entity.kinds[0] == IPS else CLIENT_QUOTAS
    _check_names(entity, added, deleted, allowed)
    if any(name in MECHANISMS for name in (*added, *deleted)):
        await _change_credentials(session, entity.names[0], added, deleted)
    else:
        await _change_quotas(session, entity, added, deleted)


def _check_names(entity: Entity, added: dict[str, str], deleted: Sequence[str], allowed: frozenset[str]) -> None:
    """Refuse what such an entity cannot have, in the sentences of Kafka's tool."""
    kind = entity.kinds[0]
    if kind == IPS:
        unknown = [name for name in (*added, *deleted) if name not in allowed]
        if unknown:
            raise Failure(
                f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server. Unexpected config "
                f"names: {','.join(unknown)}"
            )
        return
    of_client = CLIENTS in entity.kinds
    what, whose = ("quota", CLIENTS) if of_client else ("quota and SCRAM credential", USERS)
    for verb, names, shown in (("added", added, "Set"), ("deleted", deleted, "ArrayBuffer")):
        unknown = [name for name in names if name not in allowed and (of_client or name not in MECHANISMS)]
        if unknown:
            raise Failure(
                f"Only {what} configs can be {verb} for '{whose}' using --bootstrap-server. Unexpected config names: "
                f"{shown}({', '.join(unknown)})"
            )
    scram = [name for name in (*added, *deleted) if name in MECHANISMS]
    if scram and "" in entity.names:
        raise Failure(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
            "--bootstrap-server."
        )
    if scram and len(scram) < len(added) + len(deleted):
        raise Failure(
            f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USERS}' using "
            "--bootstrap-server."
        )


async def _change_quotas(session: Session, entity: Entity, added: dict[str, str], deleted: Sequence[str]) -> None:
    from headrace.wire.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        EntityData,
        OpData,
        RequestEntryData,
    )

    old = await _quotas(session, entity)
    unknown = [name for name in deleted if not old or name not in old[0][1]]
    if unknown:
        raise Failure(f"Invalid config(s): {','.join(unknown)}")
    operations = [OpData(key=key, value=_number(key, text)) for key, text in added.items()]
    operations += [OpData(key=key, remove=True) for key in deleted]
    entry = RequestEntryData(
        entity=tuple(
            EntityData(entity_type=TYPES[kind], entity_name=name or None)
            for kind, name in zip(entity.kinds, entity.names, strict=True)
        ),
        ops=tuple(operations),
    )
    answer = await ask_controller(session.cluster, ALTER_QUOTAS, AlterClientQuotasRequest(entries=(entry,)))
    for one in answer.entries:
        check(one.error_code, one.error_message)


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Failure(f"Cannot parse quota configuration value for {key}: {text}") from None


async def _change_credentials(session: Session, user: str, added: dict[str, str], deleted: Iterable[str]) -> None:
    from headrace.wire.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
    )

    request = AlterUserScramCredentialsRequest(
        deletions=tuple(ScramCredentialDeletion(name=user, mechanism=MECHANISMS[name]) for name in deleted),
        upsertions=tuple(_credential(user, name, text) for name, text in added.items()),
    )
    answer = await ask_controller(session.cluster, ALTER_SCRAM, request)
    for one in answer.results:
        check(one.error_code, one.error_message)


def _credential(user: str, mechanism: str, text: str) -> Any:
    """What the broker is told of a password: its salted hash, never the password."""
    import hashlib
    import secrets

    from headrace.wire.messages.alter_user_scram_credentials import ScramCredentialUpsertion

    match = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text, re.DOTALL)
    if match is None:
        raise Failure(f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    given = match[1]
    iterations = int(given) if given and given != "-1" else ITERATIONS_DEFAULT
    if iterations < ITERATIONS_MIN:
        raise Failure(f"Iterations {iterations} is less than the minimum {ITERATIONS_MIN} required for {mechanism}")
    salt = secrets.token_bytes(SALT_BYTES)
    name = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    return ScramCredentialUpsertion(
        name=user,
        mechanism=MECHANISMS[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(name, match[2].encode(), salt, iterations),
    )
