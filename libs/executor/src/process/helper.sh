# A helper: PID 1 of a namespace of its own, starts one stage at a time and ends what the stage leaves behind.
#
#   sh serve <shell> <limits> <own> [<drop> [<ahead>]]
#                                                     serves; where `drop` is not empty it has rights that a stage must not.
#                                                     `bounded`, `users`: but no bounding set, nor new ones; as `users` it makes
#                                                     stages other users. `ahead`: it forks the process of the next stage
#                                                     when it has reported one
#   sh once <shell> <limits> <own>                    serves one stage without a namespace; its owner ends the group
#
# Limits are shell commands by which it bounds itself, and its stages with it; its own ones each stage bounds itself by.
#
# Its name is that of the shell of a stage, for it may be that: a script that the job leaves as the only argument is evaluated by the
# process that has sourced the job (job.ts).
#
# An order is a line: empty, or the number of the user and group that the stage runs as. What it is given as environment
# counts only from then on: nothing of it is read by a program that still has rights. A word is for a job that waits for it (job.ts),
# and no order. Of who forks ahead the forked process awaits its order itself, from the second stage on.
#
# Descriptors: 2 complaints of this shell and its launcher until it is ready, 3 the owner (a line each way: an order, the stage's exit
# status), 4 the job, a file without a name that is sourced through /proc so that it is read from its beginning
# (PENSTOCK_JOB names it where there is no /proc), 5 and 6 the stage's output. The job's first line moves 5 and 6 to 1
# and 2 and closes the others: a stage inherits 0 to 2 only.

stage='
  . "${PENSTOCK_JOB:-${descriptors:-/proc/self/fd}/4}"
  if [ $# = 1 ]; then eval "set -e; set --; $1"; fi
'

# Sources the job, as another user where there is a number.
start() {
  eval "$own"
  if [ -n "$unshares" ] && [ "${1:-0}" -gt 0 ]; then
    exec unshare --setgid "$1" --setuid "$1" -- "$shell" -c "$stage" sh
  elif [ -n "$1" ]; then
    exec setpriv --reuid="$1" --regid="$1" --clear-groups $rightless -- "$shell" -c "$stage" sh
  elif [ -n "$drop" ]; then
    exec setpriv $rightless -- "$shell" -c "$stage" sh
  fi
  set --
  # The last: what came behind it would show where the script says `set -x`.
  eval "$stage"
}

# Awaits an order and passes over words whose job is gone.
ask() {
  while read -r order <&3; do
    case $order in *[!0-9]*) ;; *) return 0 ;; esac
  done
  return 1
}

shell=$2 own=$4 drop=$5 ahead=$6
case $drop in
# Nothing can be ambient that is not inherited. Each more takes a tenth of the time.
bounded | users) rightless='--inh-caps=-all' ;;
*) rightless='--inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs' ;;
esac
# From here on it says something with each stage (that nothing is left to be killed), and nobody is to be woken for that.
exec 2>/dev/null
eval "$3"

if [ "$1" = once ]; then
  trap : INT TERM
  echo ready >&3
  read -r order <&3 || exit 0
  ( start "$order" )
  echo $? >&3
  # The group is ended by the owner, this shell with it.
  read -r order <&3
  exit 0
fi

# What follows kills every process that it can see.
[ $$ = 1 ] || exit 70
# Of what runs out of memory the stage is to be killed, not its owner.
echo 500 >/proc/self/oom_score_adj
# A shell whose child died of SIGINT dies of it too, unless it traps it; the stage's own subshell does not inherit that.
trap : INT
# To look up the descriptors of each new process is a tenth of what a stage costs; these are ours, where a fork of us may open them.
( [ -r /proc/1/fd/4 ] && [ -p /proc/1/fd/5 ] && [ -w /proc/1/fd/5 ] && [ -w /proc/1/fd/6 ] ) && descriptors=/proc/1/fd
echo ready >&3
# There is nothing left to be taken from a stage of these but its user and groups: this takes two thirds of the time that `setpriv` does, which asks
# the machine's lists of users for a number, too. Not every machine's can.
[ "$drop" = users ] && unshare --setgid 0 --setuid 0 -- true && unshares=1
# The first order is awaited here: before it the owner may bound this process, and with it what it forks from then on.
ask || exit 0
asked=1
while :; do
  # Ahead, each next process is there before its order is: the fork goes beside what the owner has to do between two stages.
  (
    [ -n "$asked" ] || ask || exit 129
    start "$order"
  )
  status=$?
  asked=
  # An emptied job says that the stage is being stopped: what is left of it has its grace, until the owner ends us.
  while [ ! -s /proc/self/fd/4 ] && kill -0 -1; do sleep 0.02; done
  if kill -9 -1; then
    # Killed is not gone. Orphans are our children now, and waiting for a child of our own reaps those before it.
    rounds=0
    while
      ( : )
      kill -9 -1
    do
      rounds=$((rounds + 1))
      [ $rounds -lt 50 ] || sleep 0.01
    done
  fi
  echo $status >&3 || exit 0
  if [ -z "$ahead" ]; then
    ask || exit 0
    asked=1
  # It may have been killed before it had read its order: nobody is to read that now. The owner ends us.
  elif [ $status -gt 128 ]; then
    while read -r order <&3; do :; done
    exit 0
  fi
done
