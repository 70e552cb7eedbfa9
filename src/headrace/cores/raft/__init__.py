"""The quorum that keeps the metadata log: Raft in KRaft's pull form (KIP-595, 630, 853, 996, 1166).

A shell drives it. It opens the log, makes sure that all of it is flushed, reads `quorum-state`, builds the outline of
the log and then gives one input at a time:

    log = LogMirror(start_offset=..., end_offset=..., epochs=[(epoch, first offset), ...], snapshots=[...],
                    voters=VoterHistory(static or None, [(offset, voter set), ...]))
    raft = Raft(key=ReplicaKey(node id, directory id), config=QuorumConfig(...), log=log,
                state=decode_quorum_state(...), chance=random.randint, now_ms=clock())
    outputs = raft.start(clock())
    ...
    outputs = raft.step(Received(token, VoteRequest(...)), clock())

`clock` never runs backwards; it is not the time of day. The times in a DescribeQuorumResponse are the clock's too.
On opening, a snapshot that ranks above the end of the log means that a crash came between two halves of LoadSnapshot:
the log is emptied and starts behind that snapshot. Voters from `controller.quorum.voters` are static; a directory that
was formatted with voters has them at BOOTSTRAP_OFFSET, and the first leader writes them into the log.

The outputs of a step are carried out in their order, and wholly before the next input is given:

    Persist             write `quorum-state` and flush it before anything that follows in the list
    TruncateLog         cut the log; a crash may undo that, but never leave the old tail behind new records
    AppendRecords, AppendControl  write at the end of the log, with the offsets and epochs given; need not be safe yet
    FlushLog            start a flush (or let it share one) and go on; when it is done, give Flushed with its numbers
    Send                send to a node; give Answered or SendFailed with its correlation. The core gives up by itself
    Answer              answer a token; `read_from` asks for records or a piece of a snapshot to be put into it; who
                        asks for a piece behind the end of the snapshot gets POSITION_OUT_OF_RANGE instead
    AnswerProposal      says where the proposed records stand; they are committed when the high watermark is above
    HighWatermarkMoved  hand records up to there to the state machine
    LeaderKnown, BecameLeader, LeadershipReady, LeadershipLost  for the controller: it acts between the last two
    WriteSnapshotPiece, LoadSnapshot  keep a leader's snapshot, then make it safe and start the log behind it; the very
                        next input is SnapshotLoaded
    RaiseLogStart       delete what a snapshot covers
    Wake                give a Tick at that time, in place of the one asked for before
    ShutdownComplete    answers Shutdown
    Halt                committed records are in danger: stop, touch nothing, call for a person

What must be safe when: the quorum state before any later output of its step; a log up to an offset before Flushed says
so; a snapshot before SnapshotWritten or SnapshotLoaded is given. A fetch is sent only when the whole log is flushed,
so a fetch offset always tells the leader what is safe, and the high watermark counts nothing else.

A request that came over the wire is turned into its struct in `messages`, its answer back: same facts, no versions.
KRaftVersionsRequest is sent as ApiVersions. ApiVersions, and requests for other topics, are not for the core.
"""
