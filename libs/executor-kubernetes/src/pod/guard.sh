# The guard of a Pod: a container and a user of its own beside the stage's (P36). It has the stage started when it is told to and
# allowed to, has it ended when nobody renews that, and keeps its output until it was taken.
#
#   sh -c <this> penstock-guard <text of line.sh>
#
# It runs by whatever its image has as `sh`, with PENSTOCK_POD_UID, PENSTOCK_SETUP_SECS, PENSTOCK_TERM_MS, PENSTOCK_WINDOW and
# PENSTOCK_MASK_FILE in its environment. Its folder is /penstock, in memory, which the stage's container has to be read only; the
# pipes of `starter.sh` are opened in `pipes` before anything of the stage runs, and have no name any more when it does. That folder is
# the guard's own: /penstock is everybody's and sticky, where a kernel that protects pipes (fs.protected_fifos) lets nobody open one of
# another user as a shell does.
#
#   wake           what it is told, a line each: "until <ms>" may run until then, on the boot clock; "go" the job is here;
#                  "stop <ms>" SIGTERM now, SIGKILL so much later; "bye" everything was taken; "eof" comes from its own children,
#                  "here", "waiter <pid>", "exit <code>", "gone", "killed" and "none" from the first process of the stage's container
#   orders         to that process; it ends everything there when nobody holds this any more
#   out, err       the stage's output, and `given` the files of its outputs and of the stages that it adds
#   job            what the stage is, to be sourced
#   out.N, err.N   blocks of output; one is whole when the next one is there, and goes when it was taken
#   out.end        how many there are, once nothing can be written any more
#   token.out      a line for each block that may be written besides the first PENSTOCK_WINDOW ones
#   never          nothing, for a second
#   note           wakes the line: there is something to send
#   state          "waiting", "running" or "done <code> <cause>"
#
# What it says last, when it was not bidden to end, stands in its container's termination message.
umask 077
term=$PENSTOCK_TERM_MS uid=$PENSTOCK_POD_UID setup=$PENSTOCK_SETUP_SECS window=$PENSTOCK_WINDOW
cd /penstock || exit 70
mkfifo note never token.out token.err || exit 70
# For the stage's user, until it has them.
mkdir -m 711 pipes && mkfifo -m 622 pipes/wake pipes/out pipes/err pipes/given && mkfifo -m 644 pipes/orders || exit 70
exec 9<>pipes/wake 8<>pipes/orders 7<>note
say() {
  echo "$1" >state.new
  mv state.new state
}
say waiting
printf '%s\n' "$uid" "$PENSTOCK_MASK_FILE" >settings
printf '%s\n' "$1" >line.new
mv line.new line

deadline=0 cause=exit go= stopping= kill_at=0 code= ended= here= waiter= isRunning= pumps_left=3
trap 'echo "stop $term outside" >&9' TERM
trap : INT HUP

# Milliseconds since boot, suspension included.
now() {
  read -r up _ </proc/uptime
  part=${up#*.}
  now=$((${up%.*} * 1000 + (1$part - 100) * 10))
}

leave() { # <exit code> <why>
  printf '%s' "$2" >/dev/termination-log 2>/dev/null
  exit "$1"
}

# Reads one stream of the stage into blocks, no more of them than may wait to be taken.
pump() {
  trap '' TERM INT HUP
  exec 8<>token.$1 3<pipes/$1
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

# The files of the stage's outputs and of its stages, each with one byte more than may be read of it, so that too much is seen.
take_given() {
  trap '' TERM INT HUP
  head -c 524291 <pipes/given >outputs
  echo eof >&9
}

start() {
  isRunning=1
  say running
  echo go >&8
}

finish() { # <code>
  [ -z "$code" ] || return 0
  code=$1
  echo end >&8
}

# What is read with a time limit may lose the half of a line: a child of its own wakes the guard. Only a shell that cannot wait for a
# time starts a process for each second.
tick() {
  trap '' TERM INT HUP
  exec 6<>never
  echo probe >&6
  if ( read -r -t 1 _ <&6 ) 2>/dev/null; then
    while ! read -r -t 1 _ <&6; do echo tick >&9; done
  else
    ( while sleep 1; do echo tick; done ) >&9
  fi
  # Without a clock nobody could be held to a time.
  echo lost >&9
}

pump out &
pump err &
take_given &
tick &
: >ready
now
setup_until=$((now + setup * 1000))

while :; do
  order=
  read -r order first second <&9
  case $order in
    # All pipes are open: nothing that runs there later can open them by a name.
    here) rm -f pipes/orders pipes/out pipes/err pipes/given && chmod 600 pipes/wake && here=1 ;;
    until) deadline=$first ;;
    go) go=1 ;;
    stop)
      if [ -z "$stopping" ] && [ -z "$code" ]; then
        stopping=1
        now
        kill_at=$((now + first))
        [ "$second" != outside ] || cause=outside
        [ -z "$isRunning" ] || echo term >&8
      fi
      ;;
    waiter) waiter=$first ;;
    # What is being stopped has its grace, also where its first process does not need it.
    exit) if [ -n "$stopping" ]; then ended=$first; else finish "$first"; fi ;;
    # Whoever waited for it was killed.
    gone) [ -n "$ended" ] || finish 137 ;;
    killed) finish "${ended:-137}" ;;
    none) [ -z "$ended" ] || finish "$ended" ;;
    eof) pumps_left=$((pumps_left - 1)) ;;
    bye) [ -z "$code" ] || leave "$code" done ;;
    lost) leave 124 'there is no clock' ;;
  esac
  now
  if [ -z "$isRunning" ]; then
    [ -z "$stopping" ] || leave 143 stopped
    if [ -n "$go" ] && [ -n "$here" ] && [ "$deadline" -gt "$now" ]; then start; fi
    [ "$now" -lt "$setup_until" ] || leave 124 'nobody allowed it to start in its set-up time'
    continue
  fi
  [ "$deadline" -gt "$now" ] || leave 124 'its runner has not answered any more'
  if [ -n "$stopping" ] && [ -z "$code" ] && [ "$now" -ge "$kill_at" ]; then echo kill >&8; fi
  if [ -z "$code" ]; then
    # The stage's container has ended, and all that was in it.
    [ $pumps_left -gt 0 ] || code=${ended:-137}
    case $order in
      '' | tick | exit) if [ -n "$ended" ]; then echo left >&8; elif [ -n "$waiter" ]; then echo "look $waiter" >&8; fi ;;
    esac
  fi
  if [ -n "$code" ] && [ $pumps_left -le 0 ] && [ ! -e done ]; then
    say "done $code $cause"
    : >done
    echo >&7
  fi
  # What a line has left to us is reaped by waiting for one of our own; bash does it by itself, and would wait long for a process more.
  [ -n "$BASH_VERSION" ] || ( : )
done
