# The first process of a stage's container: it starts the stage and ends it, as the Pod's guard says (`guard.sh`), which is another
# container's and another user's. When the guard is gone, however that came about, everything here ends.
#
#   /penstock/sh -c <this> penstock-starter
#
# It is of the stage's user, and out of its reach: nothing inside can end PID 1, and the shell that it runs in may be executed and not
# read, so that the kernel lets nobody of its user look into it, take its descriptors or trace it. It decides nothing and waits for
# nothing but its orders: what the stage may do to it (limits, priority) ends or slows down the stage.
#
#   3 orders   "go", "term", "kill", "look <pid>" is that one there, "left" is anybody, "end" kill all and hand over what is left
#   4          to the guard: "here", "waiter <pid>", "exit <code>", "gone", "killed", "none"
#   5, 6       the stage's output
#   7          what it has written to PENSTOCK_OUTPUT_FILE, once it has ended; behind a NUL what it has to PENSTOCK_STAGES_FILE
umask 077
unset HOSTNAME KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT
unset KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_PROTO KUBERNETES_PORT_443_TCP_PORT KUBERNETES_PORT_443_TCP_ADDR
output=$PENSTOCK_OUTPUT_FILE mask=$PENSTOCK_MASK_FILE stages=$PENSTOCK_STAGES_FILE
unset PENSTOCK_OUTPUT_FILE PENSTOCK_MASK_FILE PENSTOCK_STAGES_FILE
trap '' TERM INT HUP QUIT
exec 3</penstock/pipes/orders 4>/penstock/pipes/wake 5>/penstock/pipes/out 6>/penstock/pipes/err 7>/penstock/pipes/given || exit 70
echo here >&4

start() {
  [ -z "$output" ] || ( umask 022; : >"$output" ) 2>/dev/null
  # The guard reads it, which is another user: it must not depend on the stage's umask.
  [ -z "$mask" ] || ( umask 022; : >"$mask" ) 2>/dev/null
  # A shell lets what runs in its background ignore SIGINT, and all that comes of it. So the stage is started in the foreground, by one
  # that has its parent killed: then it is ours, and nobody waits for it.
  (
    (
      read -r own _ _ parent _ </proc/self/stat
      echo "waiter $own" >&4
      kill -KILL "$parent"
      trap : TERM INT HUP QUIT
      (
        trap - TERM INT HUP QUIT
        exec 3<&- 4>&- 7>&- </dev/null
        set --
        [ ! -e /penstock/entry ] || . /penstock/entry
        # A session of its own: what it sends to its group is not for us.
        if command -v setsid >/dev/null; then set -- setsid "$@"; fi
        exec "$@" sh -c '. /penstock/job'
      )
      echo "exit $?" >&4
    )
    :
  ) 2>/dev/null
}

# Children that the stage has left to us are reaped by waiting for one of our own; bash does it by itself.
reap() {
  [ -n "$BASH_VERSION" ] || ( : )
}

end_all() {
  rounds=0
  while kill -KILL -1 2>/dev/null && [ $rounds -lt 2000 ]; do
    rounds=$((rounds + 1))
    ( : )
  done
}

ended=
while read -r order first <&3; do
  case $order in
    go) start ;;
    term) kill -TERM -1 2>/dev/null && kill -CONT -1 2>/dev/null ;;
    kill)
      kill -KILL -1 2>/dev/null
      echo killed >&4
      ;;
    look)
      reap
      kill -0 "$first" 2>/dev/null || echo gone >&4
      ;;
    left)
      reap
      kill -0 -1 2>/dev/null || echo none >&4
      ;;
    end)
      end_all
      exec 5>&- 6>&-
      if [ -n "$output" ] && [ -f "$output" ] && [ ! -L "$output" ]; then head -c 262145 "$output" >&7 2>/dev/null; fi
      if [ -n "$stages" ] && [ -f "$stages" ] && [ ! -L "$stages" ]; then
        { printf '\000' && head -c 262145 "$stages"; } >&7 2>/dev/null
      fi
      exec 7>&-
      ended=1
      ;;
  esac
done
[ -z "$ended" ] || exit 0
kill -KILL -1 2>/dev/null
exit 124
