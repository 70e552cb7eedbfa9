"""Remote (tiered) storage."""

ROWS = """
remote.log.storage.system.enable  boolean  false  medium
    Whether old segments may be moved to remote storage.
remote.log.storage.manager.class.name  string  unset  nonempty  medium
    The class that talks to remote storage.
remote.log.storage.manager.class.path  string  unset  medium
    Where that class is loaded from.
remote.log.storage.manager.impl.prefix  string  rsm.config.  nonempty  medium
    The prefix of the settings that are handed to that class.
remote.log.metadata.manager.class.name  string \
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  nonempty  medium
    The class that remembers which segments are remote.
remote.log.metadata.manager.class.path  string  unset  medium
    Where that class is loaded from.
remote.log.metadata.manager.impl.prefix  string  rlmm.config.  nonempty  medium
    The prefix of the settings that are handed to that class.
remote.log.metadata.manager.listener.name  string  unset  nonempty  medium
    The listener that class connects to.
remote.log.metadata.custom.metadata.max.bytes  int  128  0..  low
    The largest note remote storage may attach to a segment.
remote.log.index.file.cache.total.size.bytes  long  1073741824  1..  low  cluster-wide
    Disk space for cached indexes of remote segments.
remote.log.index.file.cache.ttl.ms  long  900000  -1..  low  hidden
    How long an unused cached index is kept; -1 keeps it.
remote.log.manager.thread.pool.size  int  2  1..  medium
    How many threads schedule remote work.
remote.log.manager.copier.thread.pool.size  int  10  1..  medium  cluster-wide
    How many threads copy segments to remote storage.
remote.log.manager.expiration.thread.pool.size  int  10  1..  medium  cluster-wide
    How many threads delete expired remote segments.
remote.log.manager.follower.thread.pool.size  int  2  1..  medium  cluster-wide
    How many threads follow remote state for partitions led elsewhere.
remote.log.manager.task.interval.ms  long  30000  1..  low
    How often remote work is looked for.
remote.log.manager.task.retry.backoff.ms  long  500  1..  low  hidden
    The first wait before failed remote work is tried again.
remote.log.manager.task.retry.backoff.max.ms  long  30000  1..  low  hidden
    The longest wait before failed remote work is tried again.
remote.log.manager.task.retry.jitter  double  0.2  0..0.5  low  hidden
    The random share that is added to those waits.
remote.log.manager.copy.max.bytes.per.second  long  9223372036854775807  1..  medium  cluster-wide
    The most bytes a second copied to remote storage.
remote.log.manager.copy.quota.window.num  int  11  1..  medium
    How many samples the copy quota remembers.
remote.log.manager.copy.quota.window.size.seconds  int  1  1..  medium
    How long each sample of the copy quota is.
remote.log.manager.fetch.max.bytes.per.second  long  9223372036854775807  1..  medium  cluster-wide
    The most bytes a second fetched from remote storage.
remote.log.manager.fetch.quota.window.num  int  11  1..  medium
    How many samples the fetch quota remembers.
remote.log.manager.fetch.quota.window.size.seconds  int  1  1..  medium
    How long each sample of the fetch quota is.
remote.log.reader.threads  int  10  1..  medium  cluster-wide
    How many threads read from remote storage for clients.
remote.log.reader.max.pending.tasks  int  100  1..  medium
    How many remote reads may wait for a thread.
remote.fetch.max.wait.ms  int  500  1..  medium  cluster-wide
    How long a consumer's fetch may wait for remote storage.
remote.list.offsets.request.timeout.ms  long  30000  1..  medium  cluster-wide
    How long an offset lookup may wait for remote storage.
log.local.retention.ms  long  -2  -2..  medium  cluster-wide
    How long records stay on local disk once they are remote; -2 follows the whole retention.
log.local.retention.bytes  long  -2  -2..  medium  cluster-wide
    How many bytes stay on local disk once they are remote; -2 follows the whole retention.
"""
