# The guard of a Pod: PID 1 of the stage's container (P36). It starts nothing before it is told to and allowed to, ends the stage
# when nobody renews that, and keeps the stage's output until it was taken.
#
#   sh -c <this> penstock-guard <text of line.sh>
#
# It runs in the image of the stage, by whatever that has as `sh`, with PENSTOCK_POD_UID, PENSTOCK_SETUP_SECS, PENSTOCK_TERM_MS,
# PENSTOCK_WINDOW and PENSTOCK_OUTPUT_FILE in its environment. Its folder is /penstock, in memory, of the stage's own user:
#
#   wake           what it is told, a line each: "until <ms>" may run until then, on the boot clock; "go" the job is here;
#                  "stop <ms>" SIGTERM now, SIGKILL so much later; "bye" everything was taken; "exit <code>" and "eof" come from
#                  its own children
#   job            what the stage is, to be sourced
#   out.N, err.N   blocks of output; one is whole when the next one is there, and goes when it was taken
#   out.end        how many there are, once nothing can be written any more
#   token.out      a line for each block that may be written besides the first PENSTOCK_WINDOW ones
#   note           wakes the line: there is something to send
#   state          "waiting", "running" or "done <code> <cause>"
#
# What it says last, when it was not bidden to end, stands in the container's termination message.
umask 077
unset HOSTNAME KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS KUBERNETES_PORT
unset KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_PROTO KUBERNETES_PORT_443_TCP_PORT KUBERNETES_PORT_443_TCP_ADDR
term=$PENSTOCK_TERM_MS uid=$PENSTOCK_POD_UID setup=$PENSTOCK_SETUP_SECS output=$PENSTOCK_OUTPUT_FILE window=$PENSTOCK_WINDOW
unset PENSTOCK_POD_UID PENSTOCK_SETUP_SECS PENSTOCK_OUTPUT_FILE PENSTOCK_WINDOW PENSTOCK_TERM_MS
cd /penstock || exit 70
mkfifo wake note out err token.out token.err || exit 70
exec 9<>wake 7<>note
say() {
  echo "$1" >state.new
  mv state.new state
}
say waiting
printf '%s\n' "$uid" "$output" >settings
printf '%s\n' "$1" >line.new
mv line.new line

deadline=0 cause=exit go= stopping= kill_at=0 code= ended= gone= pumps_left=2
trap 'echo "stop $term outside" >&9' TERM
trap : INT HUP

# Milliseconds since boot, suspension included.
now() {
  read -r up _ </proc/uptime
  part=${up#*.}
  now=$((${up%.*} * 1000 + (1$part - 100) * 10))
}

# The state letter and the parent of a process, in `letter` and `parent`.
look() {
  letter= parent=
  while read -r key value _; do
    case $key in
      State:) letter=$value ;;
      PPid:) parent=$value && break ;;
    esac
  done </proc/$1/status
} 2>/dev/null

# Whether it belongs to the guard and not to the stage: its pumps, the one that waits for the stage, a line that came in from outside.
is_kin() {
  one=$1
  [ "$one" = "$waiter" ] && return 0
  while :; do
    case $one in
      "$waiter") return 1 ;;
      0 | "$pump_out" | "$pump_err" | "$ticker") return 0 ;;
      1 | '') return 1 ;;
    esac
    look "$one"
    one=$parent
  done
}

# Sends a signal to every process of the stage; says by its status whether there was one.
hunt() {
  found=1
  for path in /proc/[0-9]*; do
    pid=${path#/proc/}
    [ "$pid" != 1 ] || continue
    look "$pid"
    case $letter in Z | X | '') continue ;; esac
    is_kin "$pid" && continue
    kill -"$1" "$pid" 2>/dev/null && found=0
  done
  return $found
}

end_all() {
  rounds=0
  while hunt KILL; do
    rounds=$((rounds + 1))
    # What forks faster than it is found goes with everything else; only output of the last moment is lost then.
    [ $rounds -lt 100 ] || kill -KILL -1 2>/dev/null
    ( : )
  done
}

leave() { # <exit code> <why>
  printf '%s' "$2" >/dev/termination-log 2>/dev/null
  exit "$1"
}

# Reads one stream of the stage into blocks, no more of them than may wait to be taken.
pump() {
  trap '' TERM INT HUP
  exec 8<>token.$1 3<$1
  n=0
  : >$1.0
  while :; do
    [ $n -lt "$window" ] || read -r _ <&8
    dd bs=65536 count=1 of=$1.$n <&3 2>/dev/null
    [ -s $1.$n ] || break
    n=$((n + 1))
    : >$1.$n
    echo >&7
  done
  echo $n >$1.end
  echo eof >&9
}

start() {
  say running
  pump out &
  pump_out=$!
  pump err &
  pump_err=$!
  [ -z "$output" ] || : >"$output"
  # A shell lets what runs in its background ignore SIGINT, and all that comes of it. So the stage is started in the foreground, by one
  # that has its parent killed: then it is ours, and nobody waits for it.
  (
    (
      read -r own _ _ parent _ </proc/self/stat
      echo "$own" >waiter
      kill -KILL "$parent"
      trap : TERM INT HUP
      (
        trap - TERM INT HUP
        exec 5>out 6>err 7<&- 9<&- </dev/null
        set --
        [ ! -e entry ] || . ./entry
        # A session of its own: what it sends to its group is not for us.
        if command -v setsid >/dev/null; then set -- setsid "$@"; fi
        exec "$@" sh -c '. /penstock/job'
      )
      echo "exit $?" >&9
    )
    :
  ) 2>/dev/null
  read -r waiter <waiter
}

finish() { # <code>
  [ -z "$code" ] || return 0
  code=$1
  end_all
}

waiter= pump_out= pump_err= ticker=
# A shell that cannot wait for a time is woken by a child of its own.
echo probe >&9
if ( read -r -t 1 _ <&9 ) 2>/dev/null; then
  tick() { read -r -t 1 order first second <&9; }
else
  ( trap '' TERM INT HUP; while sleep 1; do echo tick >&9; done ) &
  ticker=$!
  tick() { read -r order first second <&9; }
fi
now
setup_until=$((now + setup * 1000))

while :; do
  order=
  tick
  case $order in
    until) deadline=$first ;;
    go) go=1 ;;
    stop)
      if [ -z "$stopping" ] && [ -z "$code" ]; then
        stopping=1
        now
        kill_at=$((now + first))
        [ "$second" != outside ] || cause=outside
        if [ -n "$waiter" ]; then hunt TERM; hunt CONT; fi
      fi
      ;;
    # What is being stopped has its grace, also where its first process does not need it.
    exit) if [ -n "$stopping" ]; then ended=$first; else finish "$first"; fi ;;
    eof) pumps_left=$((pumps_left - 1)) ;;
    bye) [ -z "$code" ] || leave "$code" done ;;
  esac
  now
  if [ -z "$waiter" ]; then
    [ -z "$stopping" ] || leave 143 stopped
    if [ -n "$go" ] && [ "$deadline" -gt "$now" ]; then start; fi
    [ "$now" -lt "$setup_until" ] || leave 124 'nobody allowed it to start in its set-up time'
    continue
  fi
  if [ "$deadline" -le "$now" ]; then
    kill -KILL -1 2>/dev/null
    leave 124 'its runner has not answered any more'
  fi
  if [ -n "$stopping" ] && [ -z "$code" ] && [ "$now" -ge "$kill_at" ]; then hunt KILL; fi
  if [ -n "$ended" ] && [ -z "$code" ] && ! hunt 0; then finish "$ended"; fi
  # What it had to say may still be on its way.
  if [ -z "$code$ended$order" ] && [ -n "$gone" ]; then finish 137; fi
  kill -0 "$waiter" 2>/dev/null || gone=1
  if [ -n "$code" ] && [ $pumps_left -le 0 ] && [ ! -e done ]; then
    say "done $code $cause"
    : >done
    echo >&7
  fi
  # Children that the stage has left to us are reaped by waiting for one of our own.
  ( : )
done
