"""Replication of one partition: a leader that counts its followers, and a follower that never diverges.

    replica.py         which of the two this broker is, by the newest metadata
    leader.py          in-sync replicas, high watermark, who may read and write
    isr.py             the in-sync replicas: committed, and while a change of them is under way
    progress.py        how far one follower is, as its leader sees it
    high_watermark.py  how far everything is safe
    follower.py        what to ask the leader for, and what to do with the answer
    epochs.py          where two logs part, found by leader epochs alone
    read_replica.py    which replica a consumer should read from (KIP-392)

A follower's fetch offset says what it *has*: on its disk where the topic flushes before it acknowledges, in its log
where the topic does not. Everything else follows from that: the leader takes the lowest of these offsets over the
in-sync replicas, and what lies below has nowhere to be lost.
"""
