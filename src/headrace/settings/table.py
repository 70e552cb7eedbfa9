"""How the tables are written, so that four hundred knobs stay readable and cost a few milliseconds to load.

A row is one line of facts and an indented sentence under it:

    log.retention.ms  long  unset  high  cluster-wide  served
        How long records are kept before their segment may be deleted; -1 keeps them forever.

The facts are name, kind and default (`unset`, `""` for the empty text, `required`), then in any order

    low..high   bounds, either end open; `1..9|-1` allows one more number
    {a,b}       the allowed words; `{a,b}i` in any case
    high        importance (high, medium, low)
    per-broker  how it can change at run time (per-broker, cluster-wide); otherwise read-only
    <-a,b*60000 settings that give the default, with the factor between their units
    served      Headrace acts on it; hidden, nonempty as in `Setting`
"""

from typing import Any

from headrace.settings.setting import Fallback, Kind, Scope, Setting

_KINDS = {kind.name.lower(): kind for kind in Kind}
_DEFAULTS = {"unset": None, '""': ""}


def read_table(rows: str, scope: Scope) -> dict[str, Setting]:
    """The settings written in `rows`, by name."""
    settings: dict[str, Setting] = {}
    facts, sentence = "", ""
    for line in [*rows.splitlines(), "end"]:
        if line.startswith(" "):
            sentence = f"{sentence} {line.strip()}" if sentence else line.strip()
        elif line:
            if facts:
                setting = _read_row(facts, sentence, scope)
                assert setting.name not in settings, setting.name
                settings[setting.name] = setting
            facts, sentence = line, ""
    return settings


def _read_row(facts: str, sentence: str, scope: Scope) -> Setting:
    name, kind_name, default, *rest = facts.split()
    kind = _KINDS[kind_name]
    fields: dict[str, Any] = {}
    for word in rest:
        _read_fact(word, fields)
    setting = Setting(name, scope, kind, None, sentence, **fields)
    if default == "required":
        return setting._replace(required=True)
    text = _DEFAULTS.get(default, default)
    return setting if text is None else setting._replace(default=setting.parse(text))


def _read_fact(word: str, fields: dict[str, Any]) -> None:
    if word in {"high", "medium", "low"}:
        fields["importance"] = word
    elif word in {"per-broker", "cluster-wide"}:
        fields["mode"] = word
    elif word in {"served", "hidden", "nonempty"}:
        fields[word] = True
    elif word.startswith("{"):
        fields["choices"] = tuple(word.rstrip("i").strip("{}").split(","))
        fields["any_case"] = word.endswith("i")
    elif word.startswith("<-"):
        pairs = (pair.partition("*") for pair in word[2:].split(","))
        fields["synonyms"] = tuple(Fallback(name, int(factor or 1)) for name, _, factor in pairs)
    else:
        bounds, _, also = word.partition("|")
        low, _, high = bounds.partition("..")
        fields["low"] = float(low) if low else None
        fields["high"] = float(high) if high else None
        fields["also"] = int(also) if also else None
