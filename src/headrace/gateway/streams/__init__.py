"""The Stream API: `GET /stream/{topics}` as server-sent events, lines of JSON, or a WebSocket.

The client holds its position, the gateway holds nothing: any gateway serves any reconnect. One reader per broker
(`hub.py`) fetches the tail of every partition that anybody follows and keeps a short piece of it (`tail.py`); a stream
(`stream.py`) takes from there at its own pace, and whoever is further behind reads for itself. So there is no queue per
stream: a client that does not read costs what was handed to its socket.
"""
