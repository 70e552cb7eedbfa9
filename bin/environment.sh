# Read by the launchers, not run: makes sure an environment is there before they use it.
# The ready case costs one `cmp`; everything else is done by src/headrace/cli/bootstrap.py.

# need ROOT ENVIRONMENT LOCK
need() {
    if [ -x "$1/$2/bin/python" ] && [ ! -e "$1/$2/installed/$3.unfinished" ] &&
        cmp -s "$1/requirements/$3.lock" "$1/$2/installed/$3.lock"; then
        [ -z "${HEADRACE_PYTHON:-}" ] && return 0
        read -r made_with <"$1/$2/installed/interpreter" && [ "$made_with" = "$HEADRACE_PYTHON" ] && return 0
    fi
    find_python || exit 1
    PYTHONPATH="$1/src" "$python" -P -m headrace.cli.bootstrap "$1" "$2" "$3" "${HEADRACE_PYTHON:-}" || exit $?
}

# Sets $python to a Python that is new enough and can make environments, or says what is missing.
find_python() {
    unable=
    if [ -n "${HEADRACE_PYTHON:-}" ]; then
        usable "$HEADRACE_PYTHON" && return 0
    else
        for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
            usable "$candidate" && return 0
        done
    fi
    if [ -n "$unable" ]; then
        echo "Headrace needs Python's venv module, which $unable does not have." >&2
        echo "Install it (on Debian and Ubuntu: apt install python3-venv), or set HEADRACE_PYTHON to another Python." >&2
    elif [ -n "${HEADRACE_PYTHON:-}" ]; then
        echo "Headrace needs Python 3.11 or newer, and HEADRACE_PYTHON=$HEADRACE_PYTHON is not one." >&2
        echo "Set HEADRACE_PYTHON to the path of a newer Python, or unset it." >&2
    else
        echo "Headrace needs Python 3.11 or newer, and no python3 on your PATH is one." >&2
        echo "Install Python 3.11 or newer, or set HEADRACE_PYTHON to its path." >&2
    fi
    return 1
}

# Found by running it: a name on the PATH may be an old version or a version switcher's empty shim.
usable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || return 1
    if "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        python=$1
        return 0
    fi
    unable=$1
    return 1
}
