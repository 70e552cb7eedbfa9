"""What each topic may say for itself."""

ROWS = """
cleanup.policy  list  delete  {compact,delete}  medium  served  <-log.cleanup.policy
    What becomes of old records: `delete` drops whole segments, `compact` keeps each key's last value.
compression.type  string  producer  {uncompressed,zstd,lz4,snappy,gzip,producer}  medium  served  <-compression.type
    The codec the topic is stored with; `producer` keeps what each producer chose.
compression.gzip.level  int  -1  1..9|-1  medium  <-compression.gzip.level
    How hard gzip tries when the broker compresses; -1 is gzip's own default.
compression.lz4.level  int  9  1..17  medium  <-compression.lz4.level
    How hard lz4 tries when the broker compresses.
compression.zstd.level  int  3  -131072..22  medium  <-compression.zstd.level
    How hard zstd tries when the broker compresses.
delete.retention.ms  long  86400000  0..  medium  served  <-log.cleaner.delete.retention.ms
    How long a tombstone stays readable in a compacted topic after it was cleaned.
file.delete.delay.ms  long  60000  0..  medium  served  <-log.segment.delete.delay.ms
    How long a deleted segment's files stay on disk before they are removed.
flush.messages  long  9223372036854775807  1..  medium  served  <-log.flush.interval.messages
    How many records may gather in a log before it is flushed to disk.
flush.ms  long  9223372036854775807  0..  medium  served  <-log.flush.interval.ms,log.flush.scheduler.interval.ms
    How long records may wait before they are flushed to disk.
flush.on.acks.all  boolean  true  medium  served  <-flush.on.acks.all
    Whether an acks=all produce is answered only after its batch is flushed to disk (not in Kafka).
follower.replication.throttled.replicas  list  ""  medium  served
    Replicas whose copying is throttled on the follower's side, as partition:broker pairs, or `*`.
index.interval.bytes  int  4096  0..  medium  served  <-log.index.interval.bytes
    Bytes of records between two entries of a segment's offset index.
internal.segment.bytes  int  unset  1..  medium  hidden  served
    Overrides `segment.bytes` without its lower bound, for tests.
leader.replication.throttled.replicas  list  ""  medium  served
    Replicas whose copying is throttled on the leader's side, as partition:broker pairs, or `*`.
local.retention.bytes  long  -2  -2..  medium  <-log.local.retention.bytes
    How many bytes stay on local disk once they are remote; -2 follows `retention.bytes`.
local.retention.ms  long  -2  -2..  medium  <-log.local.retention.ms
    How long records stay on local disk once they are remote; -2 follows `retention.ms`.
max.compaction.lag.ms  long  9223372036854775807  1..  medium  served  <-log.cleaner.max.compaction.lag.ms
    The age at which a record makes its log due for cleaning whatever the ratio says.
max.decompressed.message.bytes  int  67108864  1..  medium  served  <-max.decompressed.message.bytes
    The most bytes one record batch may unpack to; a bigger one is refused (not in Kafka 4.3).
max.message.bytes  int  1048588  0..  medium  served  <-message.max.bytes
    The largest record batch accepted, as compressed by the producer.
message.timestamp.after.max.ms  long  3600000  0..  medium  served  <-log.message.timestamp.after.max.ms
    How far in the future a producer's timestamp may lie.
message.timestamp.before.max.ms  long  9223372036854775807  0..  medium  served  <-log.message.timestamp.before.max.ms
    How far in the past a producer's timestamp may lie.
message.timestamp.type  string  CreateTime  {CreateTime,LogAppendTime}  medium  served  <-log.message.timestamp.type
    Whether a record's time is when its producer made it or when the broker appended it.
min.cleanable.dirty.ratio  double  0.5  0..1  medium  served  <-log.cleaner.min.cleanable.ratio
    The share of uncleaned bytes at which a compacted log is worth cleaning.
min.compaction.lag.ms  long  0  0..  medium  served  <-log.cleaner.min.compaction.lag.ms
    The age a record must reach before the cleaner may touch it.
min.insync.replicas  int  1  1..  medium  served  <-min.insync.replicas
    How many in-sync replicas an acks=all produce needs.
preallocate  boolean  false  medium  <-log.preallocate
    Whether a new segment file is given its full size on disk at once.
remote.log.copy.disable  boolean  false  medium
    Whether no more segments are copied to remote storage.
remote.log.delete.on.disable  boolean  false  medium
    Whether remote data is deleted when remote storage is turned off.
remote.storage.enable  boolean  false  medium
    Whether old segments of this topic may be moved to remote storage.
retention.bytes  long  -1  medium  served  <-log.retention.bytes
    The size a partition's log may reach before its oldest segments are deleted; -1 means no limit.
retention.ms  long  604800000  -1..  medium  served \
    <-log.retention.ms,log.retention.minutes*60000,log.retention.hours*3600000
    How long records are kept before their segment may be deleted; -1 keeps them forever.
segment.bytes  int  1073741824  1048576..  medium  served  <-log.segment.bytes
    The size at which a log starts a new segment file.
segment.index.bytes  int  10485760  4..  medium  served  <-log.index.size.max.bytes
    The largest an index file may grow; a full index rolls the segment.
segment.jitter.ms  long  0  0..  medium  served  <-log.roll.jitter.ms,log.roll.jitter.hours*3600000
    The most that is taken at random off the rolling age, so that logs do not all roll together.
segment.preallocate.bytes  int  16777216  0..  medium  served  <-log.segment.preallocate.bytes
    Room ahead of a growing segment, up to 256 KiB of it as zeros in its file; 0 for none (not in Kafka).
segment.ms  long  604800000  1..  medium  served  <-log.roll.ms,log.roll.hours*3600000
    The age at which a log starts a new segment even if it is not full.
unclean.leader.election.enable  boolean  false  medium  served  <-unclean.leader.election.enable
    Whether a replica that is not in sync may lead when no other is left, losing records.
"""
