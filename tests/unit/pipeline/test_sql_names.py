"""Which tables a SELECT reads."""

import pytest

from headrace.pipeline.sql_names import table_names


@pytest.mark.parametrize(
    ("expected", "sql"),
    [
        (["gps"], "SELECT * FROM gps"),
        (["gps"], "select lat from gps g where lat > 0"),
        (["gps", "trucks"], "SELECT * FROM gps AS g JOIN trucks t ON g.id = t.id"),
        (["a", "b"], "SELECT * FROM a x, b AS y WHERE x.i = y.i"),
        (["a", "b"], "SELECT * FROM a UNION ALL SELECT * FROM b"),
        (["gps"], "WITH fast AS (SELECT * FROM gps), slow AS (SELECT * FROM fast) SELECT * FROM slow"),
        (["gps"], "SELECT extract(day FROM ts), trim(BOTH ' ' FROM name) FROM gps"),
        (["gps"], "SELECT * FROM gps WHERE a IS DISTINCT FROM b"),
        (["gps"], "SELECT 'FROM nowhere' FROM gps -- FROM comment\n/* FROM other */"),
        (["gps"], "SELECT * FROM (SELECT * FROM `gps`)"),
        ([], "SELECT * FROM range(10)"),
        ([], "SELECT * FROM parquet.`lake/stats`"),
        ([], "SELECT 1"),
        (["gps"], "SELECT window.start, count(*) FROM gps GROUP BY window(ts, '1 minute')"),
    ],
)
def test_names(expected, sql):
    """Are the names of inputs found, and nothing that is not one?"""
    assert expected == table_names(sql)
