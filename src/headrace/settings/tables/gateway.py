"""The gateway's knobs."""

ROWS = """\
listeners  list  http://127.0.0.1:8082  high served
    Where the gateway listens: one or more of http://host:port and https://host:port. Loopback only unless said.
console.enable  boolean  true  medium served
    Whether the web console is served under /console.
allowed.hosts  list  ""  medium served
    Host names under which browsers and programs may ask, besides IP addresses, localhost and this machine's own name; a
    page of another site cannot reach the gateway through a name of its own.
access.control.allow.origin  list  ""  medium served
    Origins (https://app.example.org) whose pages may ask from a browser; none if empty, * for all.
ssl.certfile  string  unset  medium served
    PEM file with the certificate chain of the https listeners.
ssl.keyfile  string  unset  medium served
    PEM file with its private key.
ssl.key.password  password  unset  medium served
    Password of the private key.
connections.max  int  4096  1..1000000  medium served
    Connections at a time, streams among them; more are answered with 503.
request.max.bytes  int  8388608  1024..1073741824  medium served
    The largest body of a request; of streaming produce, the largest record.
request.max.header.bytes  int  32768  1024..1048576  low served
    The largest head of a request: its line and all of its headers.
request.timeout.ms  int  30000  100..3600000  medium served
    How long a request's head and body may take to arrive, and the cluster to answer.
response.max.bytes  int  8388608  1024..1073741824  medium served
    The most records, in bytes, that one answer holds.
shutdown.timeout.ms  int  5000  0..600000  low served
    How long a stop waits for answers under way; streams are told to come again elsewhere.
produce.records.max  int  10000  1..1000000  medium served
    Records in one request.
read.timeout.max.ms  int  30000  0..3600000  medium served
    The longest a read waits for records, whatever its timeout says.
reads.waiting.max  int  64  1..10000  medium served
    Stateless reads that wait for records at a time, each on a connection of its own.
consumer.instances.max  int  256  1..100000  medium served
    Consumer instances (v2) at a time.
consumer.instance.idle.ms  int  300000  1000..86400000  medium served
    A consumer instance that nobody asks for so long is removed.
produce.streams.max  int  256  1..100000  medium served
    Clients at a time that produce a stream of records.
produce.stream.buffer.bytes  int  4194304  1024..1073741824  medium served
    Records of one stream that are on their way to the cluster; more are not read until some are stored.
produce.stream.idle.ms  int  300000  100..86400000  low served
    A stream of records in which nothing comes for so long is ended.
streams.max  int  2000  1..100000  medium served
    Streams at a time.
streams.max.per.address  int  1100  1..100000  medium served
    Streams at a time from one address.
stream.topics.max  int  50  1..10000  low served
    Topics in one stream.
stream.buffer.bytes  int  262144  4096..1073741824  medium served
    What a stream reads ahead of its client; one that takes nothing of it for stream.stall.ms is dropped.
stream.tail.bytes  int  65536  1024..1073741824  low served
    What is kept of the end of each partition that streams follow, for those a little behind.
stream.metadata.ms  int  5000  100..3600000  low served
    How often streams look for new partitions and deleted topics; leaders that moved are found at once.
stream.stall.ms  int  30000  100..3600000  medium served
    How long a stream's reader may take nothing while something waits for it.
stream.heartbeat.ms  int  15000  100..3600000  low served
    A stream without records says so often that it lives.
stream.retry.ms  int  1000  0..3600000  low served
    How long a browser waits before it connects again.
history.minutes  int  60  1..1440  low served
    How much the console remembers of throughput and lag.
history.interval.ms  int  5000  500..600000  low served
    How often throughput and lag are looked at.
history.partitions.max  int  5000  1..1000000  low served
    Partitions whose growth is remembered, at 8 bytes for each look; of others the lag in seconds is read from records.
history.groups.max  int  1000  1..100000  low served
    Groups whose lag is remembered.
"""
