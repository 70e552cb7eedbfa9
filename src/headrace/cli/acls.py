"""kafka-acls: list, add and remove access rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.acl_entries import CLUSTER_NAME, SPECIFIC, Entry, Pattern, operation, principal, supported
from headrace.cli.addresses import BOOTSTRAP_CONTROLLER, ZOOKEEPER, settle_address
from headrace.cli.administration import ask_controller, check
from headrace.cli.session import describe, run_tool
from headrace.cli.tool import BOOTSTRAP, COMMAND_CONFIG, Option, Tool, UsageError, Values, exactly_one, not_together
from headrace.model.acl_words import (
    ALLOW,
    ANY,
    CLUSTER,
    DELEGATION_TOKEN,
    DENY,
    GROUP,
    OPERATIONS,
    PATTERNS,
    RESOURCES,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
)
from headrace.model.errors import HeadraceError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.cli.session import Session

    Rules = dict[Pattern, list[Entry]]

DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
READ, WRITE, CREATE, DESCRIBE, IDEMPOTENT_WRITE = 3, 4, 5, 8, 12

NAMED = {
    "topic": TOPIC,
    "group": GROUP,
    "transactional-id": TRANSACTIONAL_ID,
    "delegation-token": DELEGATION_TOKEN,
    "user-principal": USER,
}
"""The options that name resources."""

TOOL = Tool(
    name="kafka-acls",
    summary="This tool helps to manage acls on kafka.",
    options=(
        BOOTSTRAP,
        BOOTSTRAP_CONTROLLER,
        COMMAND_CONFIG,
        ZOOKEEPER,
        Option(name="authorizer", argument="class", help="", is_hidden=True),
        Option(name="authorizer-properties", argument="key=value", is_repeatable=True, help="", is_hidden=True),
        Option(name="list", help="List rules, of the named resources or of all."),
        Option(name="add", help="Indicates you are trying to add ACLs."),
        Option(name="remove", help="Indicates you are trying to remove ACLs."),
        *(
            Option(name=name, argument="name", is_repeatable=True, help=f"The {name} that the rule is about; * is all.")
            for name in NAMED
        ),
        Option(name="cluster", help="The rule is about the cluster."),
        Option(name="idempotent", help="With --producer: also idempotent writes without a transactional id."),
        Option(
            name="resource-pattern-type",
            argument="literal|prefixed|any|match",
            default="literal",
            help="Whether names are whole names or how names begin; any and match find rules to list or remove.",
        ),
        Option(
            name="operation",
            argument="name",
            is_repeatable=True,
            help="What is allowed or denied; All where it is left out. One of: " + ", ".join(OPERATIONS.values()),
        ),
        Option(
            name="allow-principal", argument="type:name", is_repeatable=True, help="Who may, for instance User:alice."
        ),
        Option(name="deny-principal", argument="type:name", is_repeatable=True, help="Who must not; denials win."),
        Option(
            name="principal",
            argument="type:name",
            is_argument_optional=True,
            is_repeatable=True,
            help="With --list: only rules about this principal.",
        ),
        Option(name="allow-host", argument="host", is_repeatable=True, help="From where they may; * is anywhere."),
        Option(name="deny-host", argument="host", is_repeatable=True, help="From where they must not; * is anywhere."),
        Option(name="producer", help="What a producer needs: WRITE, DESCRIBE and CREATE on the topic."),
        Option(name="consumer", help="What a consumer needs: READ and DESCRIBE on the topic, READ on the group."),
        Option(name="force", help="Assume Yes to all queries and do not prompt."),
    ),
    examples=(
        (
            "Let alice produce",
            "--bootstrap-server localhost:9092 --add --producer --allow-principal User:alice --topic trucks_gps",
        ),
        ("See all rules", "--bootstrap-server localhost:9092 --list"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the tool."""
    return run_tool(TOOL, arguments, program, _run, check=_check, refusal=_refusal)


def _refusal(error: HeadraceError) -> str:
    if isinstance(error, KafkaError):
        from headrace.cli.java_words import exception

        return f"Error while executing ACL command: {exception(error.code, error.message)}"
    return f"Error while executing ACL command: {describe(error)}"


def _check(values: Values) -> None:
    if values.has("bootstrap-server") and values.has("bootstrap-controller"):
        raise UsageError("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    exactly_one(values, ("list", "add", "remove"), "Command must include exactly one action: --list, --add, --remove. ")
    who = ["allow-host", "allow-principal", "deny-host", "deny-principal"]
    not_together(values, "list", ["producer", "consumer", *who])
    for role in ("producer", "consumer"):
        not_together(values, role, ["operation", "deny-principal", "deny-host"])
    if values.has("principal") and not values.has("list"):
        raise UsageError("The --principal option is only available if --list is set")
    if values.has("producer") and not values.has("topic"):
        raise UsageError("With --producer you must specify a --topic")
    if values.has("idempotent") and not values.has("producer"):
        raise UsageError("The --idempotent option is only available if --producer is set")
    if values.has("consumer"):
        alone = not values.has("producer") and (values.has("cluster") or values.has("transactional-id"))
        if not values.has("topic") or not values.has("group") or alone:
            raise UsageError(
                "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id "
                "option should be specified."
            )


async def _run(session: Session) -> int:
    settle_address(session, "One of --bootstrap-server or --bootstrap-controller must be specified", with_usage=True)
    if session.values.has("list"):
        await _list(session)
    elif session.values.has("add"):
        await _add(session)
    else:
        await _remove(session)
    return 0


# --- what was typed


def _pattern_type(values: Values) -> int:
    text = values.require("resource-pattern-type")
    number = PATTERNS.get(text.upper())
    if number is None:
        raise HeadraceError(f"Cannot parse argument '{text}' of option resource-pattern-type")
    return number


def _patterns(values: Values) -> list[Pattern]:
    """The resources that were named."""
    pattern_type = _pattern_type(values)
    found = [
        Pattern(kind=kind, name=text.strip(), pattern_type=pattern_type)
        for option, kind in NAMED.items()
        for text in values.all(option)
    ]
    if pattern_type == PATTERNS["LITERAL"] and (values.has("cluster") or values.has("idempotent")):
        found.append(Pattern(kind=CLUSTER, name=CLUSTER_NAME, pattern_type=pattern_type))
    return list(dict.fromkeys(found))


def _rules(values: Values) -> Rules:
    """The rules that were typed, by resource; resources without rules where nobody is named."""
    patterns = _patterns(values)
    if not patterns:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    if not values.has("producer") and not values.has("consumer"):
        operations = [operation(text) for text in values.all("operation") or ["All"]]
        rules = {pattern: _entries(values, operations) for pattern in patterns}
    else:
        rules = _role_rules(values, patterns)
    for pattern, entries in rules.items():
        valid = supported(pattern.kind)
        if any(entry.operation not in valid for entry in entries):
            shown = ", ".join(OPERATIONS[number] for number in valid)
            raise UsageError(f"ResourceType {RESOURCES[pattern.kind]} only supports operations [{shown}]")
    return rules


def _role_rules(values: Values, patterns: Iterable[Pattern]) -> Rules:
    """What producers and consumers need."""
    needs: dict[int, list[int]] = {}
    if values.has("producer"):
        needs = {TOPIC: [WRITE, DESCRIBE, CREATE], TRANSACTIONAL_ID: [WRITE, DESCRIBE]}
        if values.has("idempotent"):
            needs[CLUSTER] = [IDEMPOTENT_WRITE]
    if values.has("consumer"):
        for kind, operations in ((TOPIC, [READ, DESCRIBE]), (GROUP, [READ])):
            needs[kind] = list(dict.fromkeys([*operations, *needs.get(kind, ())]))
    return {pattern: _entries(values, needs[pattern.kind]) for pattern in patterns if pattern.kind in needs}


def _entries(values: Values, operations: Sequence[int]) -> list[Entry]:
    found = []
    for permission, who in ((ALLOW, "allow"), (DENY, "deny")):
        principals = [principal(text) for text in values.all(f"{who}-principal")]
        hosts = [text.strip() for text in values.all(f"{who}-host")] or ["*"]
        found += [
            Entry(principal=name, host=host, operation=number, permission=permission)
            for name in principals
            for number in operations
            for host in hosts
        ]
    return list(dict.fromkeys(found))


# --- the actions


async def _list(session: Session) -> None:
    rules = await _known(session, _patterns(session.values))
    principals = [principal(text) for text in session.values.all("principal")]
    documents = []
    for who in principals or (None,):
        if who is not None:
            session.report.line(f"ACLs for principal `{who}`")
        for pattern, entries in rules.items():
            kept = [entry for entry in entries if who in {None, entry.principal}]
            if kept:
                session.report.line(f"Current ACLs for resource `ResourcePattern{pattern}`:\n{_shown(kept)}\n")
                documents += [_document(pattern, entry) for entry in kept]
    session.report.data(documents)


def _shown(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)


def _document(pattern: Pattern, entry: Entry) -> dict[str, Any]:
    shown = next(name for name, number in PATTERNS.items() if number == pattern.pattern_type)
    return {
        "resourceType": RESOURCES.get(pattern.kind, "UNKNOWN"),
        "resourceName": pattern.name,
        "patternType": shown,
    } | entry.document()


async def _known(session: Session, patterns: Sequence[Pattern]) -> Rules:
    """The rules of these resources, or all."""
    from headrace.wire.messages.describe_acls import DescribeAclsRequest

    found: Rules = {}
    for pattern in patterns or (None,):
        request = DescribeAclsRequest(
            resource_type_filter=pattern.kind if pattern else ANY,
            resource_name_filter=pattern.name if pattern else None,
            pattern_type_filter=pattern.pattern_type if pattern else PATTERNS["ANY"],
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        answer = await session.cluster.ask(DESCRIBE_ACLS, request)
        check(answer.error_code, answer.error_message)
        for resource in answer.resources:
            place = Pattern(
                kind=resource.resource_type, name=resource.resource_name, pattern_type=resource.pattern_type
            )
            entries = [
                Entry(principal=one.principal, host=one.host, operation=one.operation, permission=one.permission_type)
                for one in resource.acls
            ]
            found[place] = sorted({*found.get(place, ()), *entries}, key=str)
    return {place: found[place] for place in sorted(found, key=str)}


async def _add(session: Session) -> None:
    pattern_type = _pattern_type(session.values)
    if pattern_type not in SPECIFIC:
        shown = session.values.require("resource-pattern-type").upper()
        raise UsageError(f"A '--resource-pattern-type' value of '{shown}' is not valid when adding acls.")
    rules = _rules(session.values)
    if not all(rules.values()):
        raise UsageError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    documents = []
    for pattern, entries in rules.items():
        there = (await _known(session, [pattern])).get(pattern, [])
        for entry in entries:
            if entry in there:
                session.report.line(f"Acl (pattern=ResourcePattern{pattern}, entry={entry}) already exists.")
        new = [entry for entry in entries if entry not in there]
        if new:
            session.report.line(f"Adding ACLs for resource `ResourcePattern{pattern}`: \n {_shown(new)}\n")
            await _create(session, pattern, new)
        documents += [_document(pattern, entry) for entry in new]
    session.report.data({"added": documents})


async def _create(session: Session, pattern: Pattern, entries: Iterable[Entry]) -> None:
    from headrace.wire.messages.create_acls import AclCreation, CreateAclsRequest

    creations = tuple(
        AclCreation(
            resource_type=pattern.kind,
            resource_name=pattern.name,
            resource_pattern_type=pattern.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for entry in entries
    )
    answer = await ask_controller(session.cluster, CREATE_ACLS, CreateAclsRequest(creations=creations))
    for result in answer.results:
        check(result.error_code, result.error_message)


async def _remove(session: Session) -> None:
    removed: list[dict[str, Any]] = []
    for pattern, entries in _rules(session.values).items():
        if entries:
            question = (
                f"Are you sure you want to remove ACLs: \n {_shown(entries)}\n from resource filter "
                f"`ResourcePattern{pattern}`? (y/n)"
            )
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `ResourcePattern{pattern}`? (y/n)"
        if _confirmed(session, question):
            removed += await _delete(session, pattern, entries or (None,))
    session.report.data({"removed": removed})


def _confirmed(session: Session, question: str) -> bool:
    if session.values.has("force"):
        return True
    session.report.note(question)
    try:
        return input().strip().lower() == "y"
    except EOFError:
        raise HeadraceError("Nobody answered. With --force nobody is asked.") from None


async def _delete(session: Session, pattern: Pattern, entries: Sequence[Entry | None]) -> list[dict[str, Any]]:
    from headrace.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

    filters = tuple(
        DeleteAclsFilter(
            resource_type_filter=pattern.kind,
            resource_name_filter=pattern.name,
            pattern_type_filter=pattern.pattern_type,
            principal_filter=entry.principal if entry else None,
            host_filter=entry.host if entry else None,
            operation=entry.operation if entry else ANY,
            permission_type=entry.permission if entry else ANY,
        )
        for entry in entries
    )
    answer = await ask_controller(session.cluster, DELETE_ACLS, DeleteAclsRequest(filters=filters))
    found = []
    for result in answer.filter_results:
        check(result.error_code, result.error_message)
        for one in result.matching_acls:
            check(one.error_code, one.error_message)
            place = Pattern(kind=one.resource_type, name=one.resource_name, pattern_type=one.pattern_type)
            entry = Entry(
                principal=one.principal, host=one.host, operation=one.operation, permission=one.permission_type
            )
            found.append(_document(place, entry))
    return found
