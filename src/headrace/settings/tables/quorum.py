"""The node itself, the controller quorum and the metadata log."""

ROWS = """
process.roles  list  required  {broker,controller}  nonempty  high  served
    What this node is: `broker`, `controller`, or both.
node.id  int  required  0..  high  served
    This node's number, unique in the cluster.
broker.id  int  -1  high  served
    The old name of `node.id`; if both are given they must agree.
controller.listener.names  list  required  nonempty  high  served
    The listeners that controllers speak on.
controller.quorum.voters  list  ""  high  served
    The controllers that vote, as id@host:port entries.
controller.quorum.bootstrap.servers  list  ""  high  served
    Controllers to ask for the quorum, as host:port entries.
controller.quorum.auto.join.enable  boolean  false  low
    Whether a controller adds itself to the voters.
controller.quorum.election.timeout.ms  int  1000  0..  high  served
    How long a voter waits for a leader before it stands for election.
controller.quorum.election.backoff.max.ms  int  1000  0..  high  served
    The longest wait before a lost election is tried again.
controller.quorum.fetch.timeout.ms  int  2000  0..  high  served
    How long a leader or a follower may go without fetches before the leadership is doubted.
controller.quorum.request.timeout.ms  int  2000  0..  medium  served
    How long a request between controllers may take.
controller.quorum.retry.backoff.ms  int  20  0..  low  served
    How long to wait before a failed request between controllers is sent again.
controller.quorum.append.linger.ms  int  25  0..  medium
    How long the quorum's leader gathers records before it writes them.
controller.quorum.fetch.max.bytes  int  1048576  1..  low  served
    The most bytes of metadata log one fetch asks for.
controller.quorum.fetch.snapshot.max.bytes  int  1048576  1..  low  served
    The most bytes of a metadata snapshot one fetch asks for.
controller.performance.sample.period.ms  long  60000  100..  medium  hidden
    How often the controller reports how long its work took.
controller.performance.always.log.threshold.ms  long  2000  0..  medium  hidden
    Controller work that takes longer than this is always reported.
metadata.log.dir  string  unset  high  served
    The directory of the metadata log; the first data directory if not given.
metadata.log.segment.bytes  int  1073741824  8388608..  high  served
    The size at which the metadata log starts a new segment.
metadata.log.segment.ms  long  604800000  high  served
    The age at which the metadata log starts a new segment.
metadata.log.max.record.bytes.between.snapshots  long  20971520  1..  high  served
    Bytes of metadata after which a new snapshot is made.
metadata.log.max.snapshot.interval.ms  long  3600000  0..  high  served
    The longest time between two snapshots while there are changes; 0 never makes one by time.
metadata.max.idle.interval.ms  int  500  0..  low  served
    How often an idle active controller writes a no-op record; 0 writes none.
metadata.max.retention.bytes  long  104857600  high  served
    The size of metadata log and snapshots together beyond which old ones are deleted.
metadata.max.retention.ms  long  604800000  high  served
    The age beyond which old metadata segments and snapshots are deleted.
internal.metadata.log.segment.bytes  int  unset  low  served  hidden
    Overrides the metadata segment size, for tests.
internal.metadata.max.batch.size.in.bytes  int  8388608  low  hidden
    The largest batch the metadata log writes, for tests.
internal.metadata.delete.delay.millis  long  60000  low  hidden
    How long deleted metadata files stay on disk, for tests.
initial.broker.registration.timeout.ms  int  60000  medium  served
    How long a starting broker tries to register with the controller.
broker.heartbeat.interval.ms  int  2000  medium  served
    How often a broker tells the controller that it is alive.
broker.session.timeout.ms  int  9000  medium  served
    A broker that is silent for this long is fenced.
server.max.startup.time.ms  long  9223372036854775807  0..  medium  hidden
    How long a start may take before the node gives up.
unstable.api.versions.enable  boolean  false  high  hidden
    Whether versions of APIs that are not final yet are offered.
unstable.feature.versions.enable  boolean  false  high  hidden
    Whether versions of features that are not final yet are offered.
"""
