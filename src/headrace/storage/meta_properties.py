"""The small files that say whose a directory is: `meta.properties` of a log dir, a partition's `partition.metadata`."""

import re
from typing import NamedTuple
from uuid import UUID

from headrace.model.ids import decode_uuid, encode_uuid
from headrace.storage.checkpoint_file import parse_number, replace_file
from headrace.storage.corruption import CorruptLog
from headrace.storage.files import Files

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
_VERSION = 1
_TOPIC_ID_BEFORE = "version: 0\ntopic_id: "
_ESCAPED = re.compile(r"\\(.)")


class MetaProperties(NamedTuple):
    """What `kafka-storage format` writes: the cluster, the node and the directory itself."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None


def read_meta(files: Files, directory: str) -> MetaProperties | None:
    """A log dir's identity; None if it was never formatted, CorruptLog if the file makes no sense."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        properties = _parse_properties(files.read(path).decode())
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as fault:
        raise CorruptLog(f"{path} is not text") from fault
    try:
        if parse_number(properties["version"]) != _VERSION:
            raise CorruptLog(f"{path} has version {properties['version']}, only {_VERSION} is known")
        directory_id = properties.get("directory.id")
        return MetaProperties(
            properties["cluster.id"],
            parse_number(properties["node.id"], bits=32),
            decode_uuid(directory_id) if directory_id else None,
        )
    except KeyError as missing:
        raise CorruptLog(f"{path} has no {missing}") from missing
    except ValueError as fault:
        raise CorruptLog(f"{path}: {fault}") from fault


def write_meta(files: Files, directory: str, meta: MetaProperties) -> None:
    """Write a log dir's identity; durable on return."""
    lines = [f"cluster.id={meta.cluster_id}", f"node.id={meta.node_id}", f"version={_VERSION}"]
    if meta.directory_id is not None:
        lines.insert(1, f"directory.id={encode_uuid(meta.directory_id)}")
    replace_file(files, f"{directory}/{META_PROPERTIES}", ("\n".join(lines) + "\n").encode())


def _parse_properties(text: str) -> dict[str, str]:
    """Java's properties as far as this file uses them: key=value lines, comments, backslash escapes."""
    properties = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            properties[key.strip()] = _ESCAPED.sub(r"\1", value.strip())
    return properties


def read_topic_id(files: Files, directory: str, *, expected: UUID | None = None) -> UUID | None:
    """The topic a partition's directory belongs to; None if it does not say, or breaks off saying the expected."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        text = files.read(path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as fault:
        raise CorruptLog(f"{path} is not text") from fault
    if _is_torn(text.rstrip("\0"), expected):
        # A power cut before the log's first flush can leave the name without the content, or with a part of it.
        return None
    match = re.fullmatch(r"version:\s*0\s+topic_id:\s*(\S{22})\s*", text)
    try:
        if match is None:
            raise CorruptLog(f"{path} does not name a topic id")
        return decode_uuid(match[1])
    except ValueError as fault:
        raise CorruptLog(f"{path}: {fault}") from fault


def _is_torn(text: str, expected: UUID | None) -> bool:
    """Whether a text is the beginning of one that names the expected topic, and breaks off."""
    whole = _TOPIC_ID_BEFORE + (encode_uuid(expected) if expected is not None else "")
    return whole.startswith(text) and (expected is None or text != whole)


def sync_topic_id(files: Files, directory: str) -> None:
    """Have the disk know which topic a directory belongs to, if it says so."""
    path = f"{directory}/{PARTITION_METADATA}"
    if files.stat(path) is not None:
        files.open(path).fdatasync()


def write_topic_id(files: Files, directory: str, topic_id: UUID, *, sync: bool = True) -> None:
    """Write which topic a partition's directory belongs to."""
    text = f"{_TOPIC_ID_BEFORE}{encode_uuid(topic_id)}"
    replace_file(files, f"{directory}/{PARTITION_METADATA}", text.encode(), sync=sync)
