"""Quotas and metrics."""

ROWS = """
quota.window.num  int  11  1..  low
    How many samples client quotas remember.
quota.window.size.seconds  int  1  1..  low
    How long each sample of client quotas is.
replication.quota.window.num  int  11  1..  low  served
    How many samples replication quotas remember.
replication.quota.window.size.seconds  int  1  1..  low  served
    How long each sample of replication quotas is.
alter.log.dirs.replication.quota.window.num  int  11  1..  low  served
    How many samples the quota for moves between data directories remembers.
alter.log.dirs.replication.quota.window.size.seconds  int  1  1..  low  served
    How long each sample of the quota for moves between data directories is.
controller.quota.window.num  int  11  1..  low
    How many samples the quota for topic changes remembers.
controller.quota.window.size.seconds  int  1  1..  low
    How long each sample of the quota for topic changes is.
client.quota.callback.class  class  unset  low
    The class that decides each client's quota.
metrics.num.samples  int  2  1..  low
    How many samples a metric remembers.
metrics.sample.window.ms  long  30000  1..  low
    How long each sample of a metric is.
metrics.recording.level  string  INFO  low
    How detailed the metrics are.
metric.reporters  list  org.apache.kafka.common.metrics.JmxReporter  low  cluster-wide
    Classes that metrics are reported to.
kafka.metrics.reporters  list  ""  low
    Classes that the older metrics are reported to.
kafka.metrics.polling.interval.secs  int  10  1..  low
    How often the older metrics are reported.
metrics.listener  string  ""  medium  served
    Where metrics are served to Prometheus over HTTP (/metrics) and a sign of life (/healthy), as host:port; without a
    host on every interface, nowhere if empty (not in Kafka).
telemetry.max.bytes  int  1048576  1..  low
    The largest block of metrics a client may push.
"""
