"""The segment log: directories, segments, retention, compaction, flushing, and what a batch may look like."""

ROWS = """
log.dir  list  /tmp/kafka-logs  nonempty  high  served
    The data directory, used when `log.dirs` is not given.
log.dirs  list  unset  nonempty  high  served
    The data directories, comma separated; partitions are spread over them.
cordoned.log.dirs  list  ""  medium  per-broker
    Data directories that get no new partitions; `*` means all of them.
log.dir.failure.timeout.ms  long  30000  1..  low
    How long a broker that cannot report a failed directory to the controller keeps running.
num.partitions  int  1  1..  medium  served
    How many partitions a topic gets when its creator does not say.
auto.create.topics.enable  boolean  true  high  served
    Whether asking for the metadata of an unknown topic creates it.
delete.topic.enable  boolean  true  high  served
    Whether topics may be deleted.
message.max.bytes  int  1048588  0..  high  cluster-wide  served
    The largest record batch accepted, as compressed by the producer.
max.decompressed.message.bytes  int  67108864  1..  medium  cluster-wide  served
    The most bytes one record batch may unpack to; a bigger one is refused (not in Kafka 4.3).
flush.on.acks.all  boolean  true  high  cluster-wide  served
    Whether an acks=all produce is answered only after its batch is flushed to disk (not in Kafka).
producer.ids.max.per.partition  int  10000  1..  medium  served
    How many idempotent producers one partition remembers; the longest silent ones are forgotten first (not
    in Kafka).
log.segment.bytes  int  1073741824  1048576..  high  cluster-wide  served
    The size at which a log starts a new segment file.
log.segment.delete.delay.ms  long  60000  0..  high  cluster-wide  served
    How long a deleted segment's files stay on disk before they are removed.
log.roll.ms  long  unset  high  cluster-wide  served  <-log.roll.hours*3600000
    The age at which a log starts a new segment even if it is not full.
log.roll.hours  int  168  1..  high  served
    Same as `log.roll.ms`, in hours; used when that is not set.
log.roll.jitter.ms  long  unset  high  cluster-wide  served  <-log.roll.jitter.hours*3600000
    The most that is taken at random off the rolling age, so that logs do not all roll together.
log.roll.jitter.hours  int  0  0..  high  served
    Same as `log.roll.jitter.ms`, in hours; used when that is not set.
log.retention.ms  long  unset  high  cluster-wide  served  <-log.retention.minutes*60000,log.retention.hours*3600000
    How long records are kept before their segment may be deleted; -1 keeps them forever.
log.retention.minutes  int  unset  high  served  <-log.retention.hours*60
    Same as `log.retention.ms`, in minutes; used when that is not set.
log.retention.hours  int  168  high  served
    Same as `log.retention.ms`, in hours; used when neither milliseconds nor minutes are set.
log.retention.bytes  long  -1  high  cluster-wide  served
    The size a partition's log may reach before its oldest segments are deleted; -1 means no limit.
log.retention.check.interval.ms  long  300000  1..  medium  served
    How often logs are checked for segments that may be deleted.
log.index.size.max.bytes  int  10485760  4..  medium  cluster-wide  served
    The largest an index file may grow; a full index rolls the segment.
log.index.interval.bytes  int  4096  0..  medium  cluster-wide  served
    Bytes of records between two entries of a segment's offset index.
log.segment.preallocate.bytes  int  16777216  0..  medium  cluster-wide  served
    Room ahead of a growing segment, up to 256 KiB of it as zeros in its file; 0 for none (not in Kafka).
log.preallocate  boolean  false  medium  cluster-wide
    Whether a new segment file is given its full size on disk at once.
log.cleanup.policy  list  delete  {compact,delete}  medium  cluster-wide  served
    What becomes of old records: `delete` drops whole segments, `compact` keeps each key's last value.
log.cleaner.enable  boolean  true  medium  served
    Whether compacted topics are cleaned in the background.
log.cleaner.threads  int  1  0..  medium  cluster-wide  served
    How many threads clean compacted logs.
log.cleaner.backoff.ms  long  15000  0..  medium  cluster-wide  served
    How long the cleaner rests when no log needs cleaning.
log.cleaner.dedupe.buffer.size  long  134217728  medium  cluster-wide  served
    Memory for the cleaner's map of keys, over all its threads.
log.cleaner.io.buffer.size  int  524288  0..  medium  cluster-wide  served
    Memory for the cleaner's read and write buffers, over all its threads.
log.cleaner.io.buffer.load.factor  double  0.9  medium  cluster-wide  served
    How full the cleaner's map of keys may get.
log.cleaner.io.max.bytes.per.second  double  1.7976931348623157E308  medium  cluster-wide  served
    The most bytes a second the cleaner reads and writes together.
log.cleaner.delete.retention.ms  long  86400000  0..  medium  cluster-wide  served
    How long a tombstone stays readable in a compacted log after it was cleaned.
log.cleaner.min.cleanable.ratio  double  0.5  0..1  medium  cluster-wide  served
    The share of uncleaned bytes at which a compacted log is worth cleaning.
log.cleaner.min.compaction.lag.ms  long  0  0..  medium  cluster-wide  served
    The age a record must reach before the cleaner may touch it.
log.cleaner.max.compaction.lag.ms  long  9223372036854775807  1..  medium  cluster-wide  served
    The age at which a record makes its log due for cleaning whatever the ratio says.
log.flush.interval.messages  long  9223372036854775807  1..  high  cluster-wide  served
    How many records may gather in a log before it is flushed to disk.
log.flush.interval.ms  long  unset  high  cluster-wide  served  <-log.flush.scheduler.interval.ms
    How long records may wait before they are flushed to disk; falls back to the scheduler interval.
log.flush.scheduler.interval.ms  long  9223372036854775807  high  served
    How often logs are checked for records that are due to be flushed.
log.flush.offset.checkpoint.interval.ms  int  60000  0..  high  served
    How often the recovery points of all logs are written down.
log.flush.start.offset.checkpoint.interval.ms  int  60000  0..  high  served
    How often the start offsets of all logs are written down.
log.initial.task.delay.ms  long  30000  0..  low  hidden
    How long after the start the background log tasks first run.
log.message.timestamp.type  string  CreateTime  {CreateTime,LogAppendTime}  medium  cluster-wide  served
    Whether a record's time is when its producer made it or when the broker appended it.
log.message.timestamp.before.max.ms  long  9223372036854775807  0..  medium  cluster-wide  served
    How far in the past a producer's timestamp may lie.
log.message.timestamp.after.max.ms  long  3600000  0..  medium  cluster-wide  served
    How far in the future a producer's timestamp may lie.
compression.type  string  producer  {uncompressed,zstd,lz4,snappy,gzip,producer}  high  cluster-wide  served
    The codec topics are stored with; `producer` keeps what each producer chose.
compression.gzip.level  int  -1  1..9|-1  medium  cluster-wide
    How hard gzip tries when the broker compresses; -1 is gzip's own default.
compression.lz4.level  int  9  1..17  medium  cluster-wide
    How hard lz4 tries when the broker compresses.
compression.zstd.level  int  3  -131072..22  medium  cluster-wide
    How hard zstd tries when the broker compresses.
num.recovery.threads.per.data.dir  int  2  1..  high  cluster-wide  served
    How many logs of one data directory are recovered or closed at the same time.
fetch.max.bytes  int  57671680  1024..  medium  served
    The most bytes one fetch response carries, whatever the client asked for.
max.incremental.fetch.session.cache.slots  int  1000  0..  medium  served
    How many incremental fetch sessions are kept at once.
max.request.partition.size.limit  int  2000  1..  medium  served
    The most partitions a request for topic descriptions may span in one answer.
producer.id.expiration.ms  int  86400000  1..  low  cluster-wide  served
    How long an idempotent producer is remembered after its last write.
producer.id.expiration.check.interval.ms  int  600000  1..  low  hidden  served
    How often forgotten producers are looked for.
background.threads  int  10  1..  high  cluster-wide
    Kafka's number of threads for background chores; Headrace sizes its own pool.
create.topic.policy.class.name  class  unset  low
    A class that may refuse the creation of a topic.
alter.config.policy.class.name  class  unset  low
    A class that may refuse a change of settings.
"""
