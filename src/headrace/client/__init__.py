"""Clients of a cluster, Headrace's or Apache Kafka's: for tools, the gateway, the pipeline and people's programs."""
