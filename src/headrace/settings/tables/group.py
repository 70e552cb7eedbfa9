"""What each group may say for itself (KIP-848, 932, 1071)."""

ROWS = """
consumer.session.timeout.ms  int  45000  1..  medium  served  <-group.consumer.session.timeout.ms
    A member of this consumer group that is silent for this long is removed.
consumer.heartbeat.interval.ms  int  5000  1..  medium  served  <-group.consumer.heartbeat.interval.ms
    How often members of this consumer group send a heartbeat.
consumer.assignment.interval.ms  int  1000  0..  medium  served  <-group.consumer.assignment.interval.ms
    The least time between two assignments of this consumer group.
share.session.timeout.ms  int  45000  1..  medium  served  <-group.share.session.timeout.ms
    A member of this share group that is silent for this long is removed.
share.heartbeat.interval.ms  int  5000  1..  medium  served  <-group.share.heartbeat.interval.ms
    How often members of this share group send a heartbeat.
share.record.lock.duration.ms  int  30000  1000..  medium  served  <-group.share.record.lock.duration.ms
    How long a member holds a record before it goes to another.
share.delivery.count.limit  int  5  2..  medium  served  <-group.share.delivery.count.limit
    How often a record is delivered before this share group gives it up.
share.partition.max.record.locks  int  2000  100..  medium  served  <-group.share.partition.max.record.locks
    How many records of a partition may be out with members at once.
share.auto.offset.reset  string  latest  medium  served
    Where a partition that was never read begins: `earliest`, `latest`, or `by_duration:` and an ISO 8601 duration.
share.isolation.level  string  read_uncommitted  {read_committed,read_uncommitted}  medium  served
    Whether members see records of transactions that are open or were aborted.
share.renew.acknowledge.enable  boolean  true  medium  served
    Whether members may make the locks of their records last longer.
share.assignment.interval.ms  int  1000  0..  medium  served  <-group.share.assignment.interval.ms
    The least time between two assignments of this share group.
streams.session.timeout.ms  int  45000  1..  medium  served  <-group.streams.session.timeout.ms
    A member of this streams group that is silent for this long is removed.
streams.heartbeat.interval.ms  int  5000  1..  medium  served  <-group.streams.heartbeat.interval.ms
    How often members of this streams group send a heartbeat.
streams.num.standby.replicas  int  0  0..  medium  served  <-group.streams.num.standby.replicas
    How many standby copies of each stateful task this streams group keeps.
streams.initial.rebalance.delay.ms  int  3000  0..  medium  served  <-group.streams.initial.rebalance.delay.ms
    How long this streams group, when new, waits for more members before its first assignment.
streams.assignment.interval.ms  int  1000  0..  medium  served  <-group.streams.assignment.interval.ms
    The least time between two assignments of this streams group.
"""
