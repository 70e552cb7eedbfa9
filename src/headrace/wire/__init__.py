"""The protocol without sockets: headers, the API table, codecs, version-free messages, Produce and Fetch by hand."""
