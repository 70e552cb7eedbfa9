"""The quorum that keeps the cluster's metadata: what drives the Raft core over a real log, real files, real sockets.

Quorum         the face: start, stop, run a command, wait for what is committed
Driver         gives the core one input at a time and has its outputs carried out, in order
Effects        carries them out: the quorum state, the log, snapshots, the wire
MetadataLog    the log of decisions; SnapshotFiles what stands for its beginning
Applier        takes over what is committed, batch by batch, and tells the node
ActiveController  decides ahead of the commit while this node leads
*_messages     the core's messages as Kafka's, and back
"""
