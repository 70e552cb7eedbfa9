"""The HTTP door of a cluster, Headrace's or Apache Kafka's: REST, and records that flow until the client has enough.

It talks to the cluster only through `client/`. What it serves is written down once, in the tables of routes
(`route_table`): routing, checking and the OpenAPI document are made from them.
"""
