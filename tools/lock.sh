#!/bin/sh
# Makes the hash-pinned lock files requirements/*.lock from requirements/*.in, for every platform and Python >= 3.11.
#   tools/lock.sh             keep the versions that are locked, follow changes of the .in files
#   tools/lock.sh --upgrade   take the newest versions
# The locks name versions and hashes only: where packages come from is each machine's own pip configuration.
set -eu
cd "$(dirname -- "$0")/.."

if [ ! -x .venv-lock/bin/uv ]; then
    echo "Making .venv-lock with uv ..." >&2
    "${HEADRACE_PYTHON:-python3}" -m venv .venv-lock
    .venv-lock/bin/python -m pip install --quiet uv
fi

# core first and bench last: each is constrained by those before, so that a version means the same in every environment.
for name in core client spark gateway test bench; do
    .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-annotation --custom-compile-command tools/lock.sh \
        --output-file "requirements/$name.lock" "$@" "requirements/$name.in"
    echo "requirements/$name.lock"
done
