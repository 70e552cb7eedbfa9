"""Group coordinators: classic, consumer, streams and share groups, and committed offsets."""

ROWS = """
offset.metadata.max.bytes  int  4096  high  served
    The longest note a consumer may commit beside an offset.
offsets.load.buffer.size  int  5242880  1..  high  served
    How many bytes are read at once when committed offsets are loaded.
offsets.topic.replication.factor  short  3  1..  high  served
    How many replicas the topic of committed offsets has.
offsets.topic.num.partitions  int  50  1..  high  served
    How many partitions the topic of committed offsets has.
offsets.topic.segment.bytes  int  104857600  1..  high  served
    The segment size of the topic of committed offsets.
offsets.topic.compression.codec  int  0  high
    The codec number the topic of committed offsets is written with.
offsets.retention.minutes  int  10080  1..  high  served
    How long the offsets of a group without members are kept.
offsets.retention.check.interval.ms  long  600000  1..  high  served
    How often expired offsets are looked for.
offsets.commit.timeout.ms  int  5000  1..  high  served
    How long an offset commit may wait for its replicas.
group.min.session.timeout.ms  int  6000  medium  served
    The shortest session timeout a classic member may ask for.
group.max.session.timeout.ms  int  1800000  medium  served
    The longest session timeout a classic member may ask for.
group.initial.rebalance.delay.ms  int  3000  medium  served
    How long a new classic group waits for more members before its first rebalance.
group.max.size  int  2147483647  1..  medium  served
    How many members a classic group may have.
group.coordinator.rebalance.protocols  list  classic,consumer,streams  {consumer,classic,share,streams}  medium  served
    Which kinds of groups the coordinator serves.
group.coordinator.threads  int  4  1..  high
    Kafka's number of group coordinator threads.
group.coordinator.background.threads  int  2  1..  high
    Kafka's number of threads for a coordinator's slow chores.
group.coordinator.append.linger.ms  int  -1  -1..  medium
    How long the coordinator gathers records before a write; -1 adapts to the load.
group.coordinator.cached.buffer.max.bytes  int  1048588  524288..  medium  cluster-wide
    The largest write buffer a coordinator keeps for its next write.
group.consumer.session.timeout.ms  int  45000  1..  medium  served
    A consumer-protocol member that is silent for this long is removed.
group.consumer.min.session.timeout.ms  int  45000  1..  medium  served
    The shortest session timeout a consumer group may be given.
group.consumer.max.session.timeout.ms  int  60000  1..  medium  served
    The longest session timeout a consumer group may be given.
group.consumer.heartbeat.interval.ms  int  5000  1..  medium  served
    How often consumer-protocol members send a heartbeat.
group.consumer.min.heartbeat.interval.ms  int  5000  1..  medium  served
    The shortest heartbeat interval a consumer group may be given.
group.consumer.max.heartbeat.interval.ms  int  15000  1..  medium  served
    The longest heartbeat interval a consumer group may be given.
group.consumer.assignment.interval.ms  int  1000  0..  medium  cluster-wide  served
    The least time between two assignments of a consumer group.
group.consumer.min.assignment.interval.ms  int  0  0..  medium  served
    The shortest assignment interval a consumer group may be given.
group.consumer.max.assignment.interval.ms  int  15000  0..  medium  served
    The longest assignment interval a consumer group may be given.
group.consumer.max.size  int  2147483647  1..  medium  served
    How many members a consumer-protocol group may have.
group.consumer.assignors  list  uniform,range  medium  served
    The assignors a consumer group may use on the server, the default one first.
group.consumer.migration.policy  string  bidirectional  {DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL}i  medium  served
    Which moves between the classic and the consumer protocol a live group may make.
group.consumer.regex.refresh.interval.ms  int  600000  10000..  medium  hidden  served
    How often a subscription by pattern is matched again.
group.streams.session.timeout.ms  int  45000  1..  medium  served
    A streams member that is silent for this long is removed.
group.streams.min.session.timeout.ms  int  45000  1..  medium  served
    The shortest session timeout a streams group may be given.
group.streams.max.session.timeout.ms  int  60000  1..  medium  served
    The longest session timeout a streams group may be given.
group.streams.heartbeat.interval.ms  int  5000  1..  medium  served
    How often streams members send a heartbeat.
group.streams.min.heartbeat.interval.ms  int  5000  1..  medium  served
    The shortest heartbeat interval a streams group may be given.
group.streams.max.heartbeat.interval.ms  int  15000  1..  medium  served
    The longest heartbeat interval a streams group may be given.
group.streams.assignment.interval.ms  int  1000  0..  medium  cluster-wide  served
    The least time between two assignments of a streams group.
group.streams.min.assignment.interval.ms  int  0  0..  medium  served
    The shortest assignment interval a streams group may be given.
group.streams.max.assignment.interval.ms  int  15000  0..  medium  served
    The longest assignment interval a streams group may be given.
group.streams.initial.rebalance.delay.ms  int  3000  0..  medium  served
    How long a new streams group waits for more members before its first assignment.
group.streams.max.size  int  2147483647  1..  medium  served
    How many members a streams group may have.
group.streams.num.standby.replicas  int  0  0..  medium  served
    How many standby copies of each stateful task a streams group keeps.
group.streams.max.standby.replicas  int  2  0..  medium  served
    The most standby copies a streams group may ask for.
group.share.session.timeout.ms  int  45000  1..  medium  served
    A share member that is silent for this long is removed.
group.share.min.session.timeout.ms  int  45000  1..  medium  served
    The shortest session timeout a share group may be given.
group.share.max.session.timeout.ms  int  60000  1..  medium  served
    The longest session timeout a share group may be given.
group.share.heartbeat.interval.ms  int  5000  1..  medium  served
    How often share members send a heartbeat.
group.share.min.heartbeat.interval.ms  int  5000  1..  medium  served
    The shortest heartbeat interval a share group may be given.
group.share.max.heartbeat.interval.ms  int  15000  1..  medium  served
    The longest heartbeat interval a share group may be given.
group.share.assignment.interval.ms  int  1000  0..  medium  cluster-wide  served
    The least time between two assignments of a share group.
group.share.min.assignment.interval.ms  int  0  0..  medium  served
    The shortest assignment interval a share group may be given.
group.share.max.assignment.interval.ms  int  15000  0..  medium  served
    The longest assignment interval a share group may be given.
group.share.assignors  list  simple  medium
    The assignors a share group may use on the server.
group.share.max.size  int  200  1..1000  medium  served
    How many members a share group may have.
group.share.max.share.sessions  int  2000  1..  medium  served
    How many share sessions one broker keeps.
group.share.delivery.count.limit  int  5  2..10  medium  served
    How often a record is delivered before a share group gives it up.
group.share.min.delivery.count.limit  int  2  2..5  medium  served
    The lowest delivery limit a share group may be given.
group.share.max.delivery.count.limit  int  10  5..25  medium  served
    The highest delivery limit a share group may be given.
group.share.partition.max.record.locks  int  2000  100..10000  medium  served
    How many records of a partition may be out with share members at once.
group.share.min.partition.max.record.locks  int  100  100..2000  medium  served
    The lowest lock limit a share group may be given.
group.share.max.partition.max.record.locks  int  4000  2000..10000  medium  served
    The highest lock limit a share group may be given.
group.share.record.lock.duration.ms  int  30000  1000..3600000  medium  served
    How long a share member holds a record before it goes to another.
group.share.min.record.lock.duration.ms  int  15000  1000..30000  medium  served
    The shortest lock a share group may be given.
group.share.max.record.lock.duration.ms  int  60000  30000..3600000  medium  served
    The longest lock a share group may be given.
group.share.initialize.retry.interval.ms  int  30000  1..  low  hidden  served
    How long before setting up a share partition is tried again.
group.share.persister.class.name  string  org.apache.kafka.server.share.persister.DefaultStatePersister  medium \
    hidden
    The class that stores the state of share groups.
share.coordinator.append.linger.ms  int  -1  -1..  medium
    How long the share coordinator gathers records before a write; -1 adapts to the load.
share.coordinator.cached.buffer.max.bytes  int  1048588  524288..  medium  cluster-wide
    The largest write buffer the share coordinator keeps for its next write.
share.coordinator.cold.partition.snapshot.interval.ms  int  300000  1..  low  hidden
    How often quiet share partitions are written as a snapshot.
share.coordinator.load.buffer.size  int  5242880  1..  high  served
    How many bytes are read at once when share state is loaded.
share.coordinator.snapshot.update.records.per.snapshot  int  500  0..500  medium  served
    How many updates follow a share snapshot before a new one is made.
share.coordinator.state.topic.compression.codec  int  0  high
    The codec number the share state topic is written with.
share.coordinator.state.topic.min.isr  short  2  1..  high  served
    How many in-sync replicas a write to the share state topic needs.
share.coordinator.state.topic.num.partitions  int  50  1..  high  served
    How many partitions the share state topic has.
share.coordinator.state.topic.prune.interval.ms  int  300000  1..  low  hidden  served
    How often outdated share state is pruned.
share.coordinator.state.topic.replication.factor  short  3  1..  high  served
    How many replicas the share state topic has.
share.coordinator.state.topic.segment.bytes  int  104857600  1..  high  served
    The segment size of the share state topic.
share.coordinator.threads  int  1  1..  medium
    Kafka's number of share coordinator threads.
share.coordinator.write.timeout.ms  int  5000  1..  high  served
    How long a write of share state may wait for its replicas.
share.fetch.purgatory.purge.interval.requests  int  1000  medium
    After how many requests finished waiting share fetches are swept out.
"""
