"""Headrace measured beside Apache Kafka in the same run; the numbers that last are the ratios."""
