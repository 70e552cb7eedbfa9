"""Data pipelines on Spark, declared in one small file."""
