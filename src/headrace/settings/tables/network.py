"""Sockets, listeners, and the limits on what strangers may send."""

ROWS = """
listeners  list  PLAINTEXT://:9092  nonempty  high  served
    Where this node accepts connections, as NAME://host:port entries; an empty host means every interface
    (Kafka can change it while it runs; here it takes a restart).
advertised.listeners  list  unset  nonempty  high  served
    The addresses clients and other nodes are told to use, when they differ from `listeners`.
listener.security.protocol.map  string \
    SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT  low  served
    Which security protocol each listener name speaks, as NAME:PROTOCOL pairs (Kafka can change it while it runs; here
    it takes a restart).
socket.send.buffer.bytes  int  102400  high  served
    Size of the kernel's send buffer on accepted connections, until a reply is larger: then it is 256 KiB at least, and
    4 MiB for one that is sent from files; -1 leaves the system's choice.
socket.receive.buffer.bytes  int  102400  high  served
    Size of the kernel's receive buffer on accepted connections, until a request is larger: then it is 512 KiB at least;
    -1 leaves the system's choice.
socket.request.max.bytes  int  104857600  1..  high  served
    The largest request frame that is read; a bigger one closes the connection.
socket.listen.backlog.size  int  50  1..  medium  served
    How many connections may wait in the kernel to be accepted.
socket.connection.setup.timeout.ms  long  10000  medium
    How long an outgoing connection may take to be established at first.
socket.connection.setup.timeout.max.ms  long  30000  medium
    The ceiling that the growing connection setup timeout backs off to.
connections.max.idle.ms  long  600000  medium  served
    A connection without traffic for this long is closed.
connection.failed.authentication.delay.ms  int  100  0..  low
    How long a connection that failed to authenticate is held before it is closed.
max.connections  int  8192  0..  medium  cluster-wide  served
    How many connections this node holds at once over all listeners (Kafka: unlimited; here finite).
max.connections.per.ip  int  4096  0..  medium  cluster-wide  served
    How many connections one address may hold at once (Kafka: unlimited; here finite).
max.connections.per.ip.overrides  string  ""  medium  cluster-wide  served
    Exceptions to `max.connections.per.ip`, as host:count pairs.
max.connection.creation.rate  int  2147483647  0..  medium  cluster-wide
    How many new connections a second this node accepts.
num.network.threads  int  3  1..  high  cluster-wide
    Kafka's number of network threads per listener; Headrace serves all sockets from one event loop.
num.io.threads  int  8  1..  high  cluster-wide
    Kafka's number of request threads; Headrace answers requests on its event loop.
queued.max.requests  int  500  1..  high
    How many requests may wait for a request thread before sockets are no longer read.
queued.max.request.bytes  long  268435456  medium  served
    Bytes of requests in memory at once before sockets are no longer read; 0 or less lifts the limit (Kafka: no
    limit; here finite).
request.timeout.ms  int  30000  high  served
    How long this node waits for the answer to a request it sent.
early.start.listeners  list  unset  high
    Listeners that may open before the node has loaded its access rules.
controller.socket.timeout.ms  int  30000  medium  served
    How long requests between controller and brokers may take on the socket.
request.first.bytes.timeout.ms  int  10000  1..  medium  served
    How long a new connection may take to send its first bytes (not in Kafka).
request.frame.timeout.ms  int  30000  1..  medium  served
    How long a request frame may take to arrive once it has begun (not in Kafka).
"""
