"""The lines of keys in a TOML text."""

from headrace.pipeline.toml_lines import key_lines, line_of

TEXT = '''\
# A comment [with.brackets]
[pipeline]
name = "fleet"   # = not a key
"quoted key" = 1
dotted.name = 2

[transform.clean]
sql = """
SELECT a = b
[no.table]
key = 1
"""
inputs = [
  "one",  # ]
  "two",
]
[ source . "gps" ]
watermark = { column = "ts", delay = "[" }
literal = \'\'\'
x = 1\'\'\'
last = "\\"]"
end = true'''


def test_every_key_has_its_line():
    """Are tables and keys found on their lines, whatever strings, comments, arrays and long strings hold?"""
    assert key_lines(TEXT) == {
        ("pipeline",): 2,
        ("pipeline", "name"): 3,
        ("pipeline", "quoted key"): 4,
        ("pipeline", "dotted"): 5,
        ("pipeline", "dotted", "name"): 5,
        ("transform",): 7,
        ("transform", "clean"): 7,
        ("transform", "clean", "sql"): 8,
        ("transform", "clean", "inputs"): 13,
        ("source",): 17,
        ("source", "gps"): 17,
        ("source", "gps", "watermark"): 18,
        ("source", "gps", "literal"): 19,
        ("source", "gps", "last"): 21,
        ("source", "gps", "end"): 22,
    }


def test_what_is_not_written_down_is_found_nearby():
    """Is the line of an absent key that of its table, and that of an unknown table the first?"""
    lines = key_lines(TEXT)

    assert line_of(lines, "source", "gps", "topic") == 17
    assert line_of(lines, "source", "gps", "watermark", "column") == 18
    assert line_of(lines, "sink", "alerts") == 1
