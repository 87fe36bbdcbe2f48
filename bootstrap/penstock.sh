#!/bin/sh
# The command `penstock`: by Node 26 at once where the bootstrap has seen one run, so that Node starts once and not twice.
file=$0
# npm's own link to the command.
[ ! -L "$file" ] || file=$(readlink -f -- "$file")
here=${file%/*}
[ "$here" != "$file" ] || here=.
node26=
{ read -r node26 <"$here/../node_modules/.penstock-node"; } 2>/dev/null
[ -x "$node26" ] || node26=node
# As memory.js has it.
case ${1-} in
  serve | service | runner)
    export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX-2}" MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_-131072}"
    export NODE_OPTIONS="--max-semi-space-size=8${NODE_OPTIONS:+ $NODE_OPTIONS}"
    ;;
esac
exec "$node26" "$here/penstock.js" "$@"
