"""Transactions and their coordinator."""

ROWS = """
transactional.id.expiration.ms  int  604800000  1..  high  served
    How long a transactional id without transactions is remembered.
transaction.max.timeout.ms  int  900000  1..  high  served
    The longest transaction timeout a producer may ask for.
transaction.state.log.replication.factor  short  3  1..  high  served
    How many replicas the transaction state topic has.
transaction.state.log.num.partitions  int  50  1..  high  served
    How many partitions the transaction state topic has.
transaction.state.log.min.isr  int  2  1..  high  served
    How many in-sync replicas a write to the transaction state topic needs.
transaction.state.log.segment.bytes  int  104857600  1..  high  served
    The segment size of the transaction state topic.
transaction.state.log.load.buffer.size  int  5242880  1..  high  served
    How many bytes are read at once when transaction state is loaded.
transaction.abort.timed.out.transaction.cleanup.interval.ms  int  10000  1..  low  served
    How often transactions that timed out are aborted.
transaction.remove.expired.transaction.cleanup.interval.ms  int  3600000  1..  low  served
    How often expired transactional ids are removed.
transaction.partition.verification.enable  boolean  true  low  cluster-wide  served
    Whether a partition checks with the coordinator that a transaction includes it.
transaction.two.phase.commit.enable  boolean  false  low
    Whether producers may leave a transaction prepared for an outside coordinator.
add.partitions.to.txn.retry.backoff.ms  int  20  1..  high  served
    How long the broker waits before it asks again to add a partition to a transaction.
add.partitions.to.txn.retry.backoff.max.ms  int  100  0..  high  served
    For how long the broker repeats that question before the client is told.
"""
