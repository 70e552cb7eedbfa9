"""Replicas: how many, in sync or not, and how followers copy."""

ROWS = """
broker.rack  string  unset  medium  served
    The rack or host this broker stands in; replicas of a partition are spread over racks.
default.replication.factor  int  1  medium  served
    How many replicas a topic gets when its creator does not say.
min.insync.replicas  int  1  1..  high  cluster-wide  served
    How many in-sync replicas an acks=all produce needs.
unclean.leader.election.enable  boolean  false  high  cluster-wide  served
    Whether a replica that is not in sync may lead when no other is left, losing records.
unclean.leader.election.interval.ms  long  300000  1..  medium  served  hidden
    How often the controller looks for partitions that need an unclean election.
inter.broker.listener.name  string  unset  medium  served
    The listener brokers use to reach each other.
security.inter.broker.protocol  string  PLAINTEXT  {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}  medium  served
    The security protocol whose listener brokers use, when no listener name is given.
replica.lag.time.max.ms  long  30000  high  served
    A follower that has not caught up for this long leaves the in-sync replicas.
replica.socket.timeout.ms  int  30000  high  served
    How long a follower's fetch may take on the socket.
replica.socket.receive.buffer.bytes  int  65536  high
    Size of the receive buffer of a follower's connection.
replica.fetch.max.bytes  int  1048576  0..  medium  served
    How many bytes of one partition a follower asks for; a larger first batch is still sent.
replica.fetch.wait.max.ms  int  500  high  served
    How long a leader may hold a follower's fetch while there is nothing new.
replica.fetch.min.bytes  int  1  high  served
    How many bytes a leader gathers before it answers a follower's fetch.
replica.fetch.response.max.bytes  int  10485760  0..  medium  served
    How many bytes a follower asks for in one fetch response.
replica.fetch.backoff.ms  int  1000  0..  medium  served
    How long a follower waits after a failed fetch of a partition.
replica.high.watermark.checkpoint.interval.ms  long  5000  high  served
    How often high watermarks are written down.
replica.selector.class  string  unset  medium  served
    A class that chooses which replica a consumer reads from.
num.replica.fetchers  int  1  1..  high  cluster-wide  served
    How many fetchers copy from each leader broker.
num.replica.alter.log.dirs.threads  int  unset  high  served
    How many threads move replicas between data directories.
auto.leader.rebalance.enable  boolean  true  high  served
    Whether leadership is moved back to preferred replicas by itself.
leader.imbalance.check.interval.seconds  long  300  1..  high  served
    How often the controller checks whether leadership is out of balance.
fetch.purgatory.purge.interval.requests  int  1000  medium
    After how many requests finished waiting fetches are swept out.
producer.purgatory.purge.interval.requests  int  1000  medium
    After how many requests finished waiting produces are swept out.
delete.records.purgatory.purge.interval.requests  int  1  medium
    After how many requests finished waiting record deletions are swept out.
follower.fetch.last.tiered.offset.enable  boolean  false  medium  cluster-wide
    Whether a new follower starts copying where remote storage ends.
controlled.shutdown.enable  boolean  true  medium  served
    Whether a stopping broker hands its leaderships over first.
leader.replication.throttled.rate  long  9223372036854775807  0..  medium  cluster-wide  served  hidden
    The bytes a second a leader may send to throttled followers.
follower.replication.throttled.rate  long  9223372036854775807  0..  medium  cluster-wide  served  hidden
    The bytes a second throttled followers may copy.
replica.alter.log.dirs.io.max.bytes.per.second  long  9223372036854775807  0..  medium  cluster-wide  served  hidden
    The bytes a second that moves between data directories may copy.
"""
