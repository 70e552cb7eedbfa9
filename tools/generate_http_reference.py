"""Write docs/reference/http-api.md from the gateway's routes; a test regenerates and compares.

Run as: PYTHONPATH=src python tools/generate_http_reference.py
"""

import json
from pathlib import Path
from typing import Any

from headrace.gateway.openapi import document
from headrace.gateway.route_table import ROUTES

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "http-api.md"

INTRODUCTION = """\
# HTTP API

Made by `tools/generate_http_reference.py` from the routes in `src/headrace/gateway`; do not edit by hand.

A running gateway serves the same as an OpenAPI 3.1 document at `/openapi`, and as a page to read and try at `/docs`.
Names in braces stand for what belongs there; a slash inside a name is written `%2F`.

Every refusal is `{"error_code": …, "message": …}`.
Besides the statuses named with an operation, every operation may answer with these:
"""


def render() -> str:
    """The whole page."""
    whole = document(ROUTES)
    operations = [
        (method.upper(), path, one) for path, methods in whole["paths"].items() for method, one in methods.items()
    ]
    common = set.intersection(*(set(one["responses"]) for _, _, one in operations))
    parts = [INTRODUCTION, _statuses(sorted(common), whole)]
    for tag in whole["tags"]:
        parts += [f"## {tag['name']}\n", f"{tag['description']}\n"]
        parts += [_operation(*one, common=common) for one in operations if one[2]["tags"] == [tag["name"]]]
    parts += ["## Shapes\n", "What the names in parentheses stand for; a field in **bold** is always there.\n"]
    parts += [_shape(name, schema) for name, schema in whole["components"]["schemas"].items()]
    return "\n".join(parts)


def _shape(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = "".join(
        f"| {_bold(field, field in required)} | {_type(one)} | {_cell(one.get('description', ''))} |\n"
        for field, one in schema.get("properties", {}).items()
    )
    return f"### {name}\n\n{schema.get('description', '')}\n\n| Field | Type | Meaning |\n|---|---|---|\n{rows}"


def _bold(field: str, is_bold: bool) -> str:
    return f"**`{field}`**" if is_bold else f"`{field}`"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items') or {})}"
    return str(schema.get("format") or schema.get("contentEncoding") or schema.get("type", "any"))


def _statuses(statuses: list[str], whole: dict[str, Any]) -> str:
    responses = whole["components"]["responses"]
    rows = "".join(f"| {status} | {responses[f'Status{status}']['description']} |\n" for status in statuses)
    return f"| Status | Meaning |\n|---|---|\n{rows}"


def _operation(method: str, path: str, one: dict[str, Any], *, common: set[str]) -> str:
    parts = [f"### {one['summary']}\n", f"`{method} {path}`\n"]
    if "description" in one:
        parts.append(one["description"].rstrip() + "\n")
    query = [parameter for parameter in one["parameters"] if parameter["in"] == "query"]
    if query:
        rows = "".join(f"| `{each['name']}` | {_kind(each)} | {_cell(each['description'])} |\n" for each in query)
        parts.append(f"| Parameter | Type | Meaning |\n|---|---|---|\n{rows}")
    if "requestBody" in one:
        parts.append(_body(one["requestBody"]["content"]))
    parts.append(_answers(one["responses"], common))
    return "\n".join(parts)


def _body(content: dict[str, Any]) -> str:
    medias = ", ".join(f"`{media}`" for media in content)
    first = next(iter(content.values()))
    return f"Body: {medias}\n\n```json\n{json.dumps(first['example'], indent=2, ensure_ascii=False)}\n```\n"


def _answers(responses: dict[str, Any], common: set[str]) -> str:
    lines = []
    for status, answer in responses.items():
        if status in common and "$ref" in answer:
            continue
        if "$ref" in answer:
            lines.append(status)
            continue
        medias = ", ".join(f"`{media}`" for media in answer.get("content", {}))
        shape = next((one["schema"] for one in answer.get("content", {}).values()), {})
        name = shape.get("$ref", "").rpartition("/")[2]
        words = [status, f"({name})" if name else "", f"as {medias}" if medias else ""]
        lines.append(" ".join(word for word in words if word))
    return f"Answers: {'; '.join(lines)}.\n"


def _kind(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    words = [schema.get("type", "string")]
    if "enum" in schema:
        words = [", ".join(f"`{one}`" for one in schema["enum"])]
    if "minimum" in schema or "maximum" in schema:
        words.append(f"{schema.get('minimum', '')}..{schema.get('maximum', '')}")
    if "default" in schema:
        words.append(f"(default {schema['default']})")
    return " ".join([*words, *(["required"] if parameter["required"] else [])])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(render(), encoding="utf-8")
    print(f"wrote {TARGET.name}")
