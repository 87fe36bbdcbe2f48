# What the first process of a stage's container does; `$0` is the folder in which it finds its pipes and its job. It is
# given to the image's own sh as text.
#
# In `control`: "go", once, then "stop". In `life`: "up", and how the stage has ended; its end of file is the end of this
# process, and with it of all the others. The job is a file that has lost its name by the time it is written to.
#
# The job's first line moves 5 and 6 to 1 and 2 and closes 3 to 6: a stage inherits 0 to 2 only.
exec 3<"$0/control" 4<"$0/job" 5>"$0/out" 6>"$0/err" 7>"$0/life" </dev/null >/dev/null 2>&1 || exit 125
trap : INT TERM HUP
unset HOSTNAME TERM container OLDPWD
echo up >&7
# End of file: its owner is dead before anything has begun.
read -r order <&3 || exit 125
# Ends everything when its owner is gone, should the guard be gone too; and hands on what the owner asks for.
(
  trap '' INT TERM HUP
  exec 4>&- 5>&- 6>&- 7>&-
  while read -r order <&3; do
    kill -TERM -1
    kill -CONT -1
  done
  kill -KILL -1
) &
watcher=$!
# Of what runs out of memory the stage is to be killed, and not who tells of it.
( exec 7>&-; echo 500 >/proc/self/oom_score_adj; . /proc/self/fd/4 )
status=$?
kill -KILL "$watcher"
# An emptied job says that the stage is being stopped: what is left of it has its grace, until the owner ends this process.
while [ ! -s /proc/self/fd/4 ] && kill -0 -1; do sleep 0.02 || sleep 1; done
# Of the processes of this container, how many the kernel has killed for want of memory.
killed=0
for events in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ ! -r "$events" ] || while read -r name value; do [ "$name" != oom_kill ] || killed=$value; done <"$events"
done
echo "end $status $killed" >&7
exit "$status"
