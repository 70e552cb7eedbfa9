"""The step of the pipeline that says in which region a report was made: a join with a small table, all inside Spark."""

from typing import TYPE_CHECKING, Any

from geography import region_cells
from pyspark.sql.functions import broadcast, coalesce, col, floor, lit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOWHERE = "elsewhere"


def locate(inputs: "dict[str, DataFrame]", spark: "SparkSession", options: dict[str, Any]) -> "DataFrame":
    """Reports with a column `region`."""
    (reports,) = inputs.values()
    cells = spark.createDataFrame(region_cells(), "north long, east long, found string")
    placed = reports.withColumns({"north": floor(col("lat") * 2), "east": floor(col("lon") * 2)})
    joined = placed.join(broadcast(cells), ["north", "east"], "left")
    return joined.withColumn("region", coalesce("found", lit(NOWHERE))).drop("north", "east", "found")
