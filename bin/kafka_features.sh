#!/bin/sh
# Kafka's name for this tool: bin/headrace sets itself up and runs it.
self=$(readlink -f -- "$0")
HEADRACE_INVOKED_AS=$0
export HEADRACE_INVOKED_AS
exec "${self%/*}/headrace" kafka-features "$@"
