"""Spark reads from and writes to topics: the data source `headrace`, for PySpark."""
