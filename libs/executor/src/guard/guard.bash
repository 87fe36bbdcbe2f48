# The guard (P15): ends the helpers that it holds when its owner is gone (end of file) or when the last deadline it was
# given has passed, also where owner or guard were frozen meanwhile. Once it has fired it holds nothing ever again.
#
# In:  "+ <pid> <start time>" hold   "- <pid>" let go   "= <ms>" deadline, absolute, on the boot clock   "? <n>" not fired?
# Out: "+ <pid>" held, "! <pid>" not there (any more)   "= <ms>" taken   "? <n>" not fired
#
# A deadline comes absolute because one counted from the arrival of its line would let a frozen owner overrun.

set -f
trap '' HUP INT TERM QUIT
partial=
declare -A held=()
deadline=0

# Milliseconds since boot, suspension included.
now() {
  local up
  read -r up _ </proc/uptime
  local whole=${up%.*} part=${up#*.}
  REPLY=$((whole * 1000 + 10#$part * 10))
}

# Field 22 of /proc/<pid>/stat. The program's name before it may hold blanks and parentheses.
start_time() {
  local stat
  REPLY=
  { read -r -d '' stat </proc/$1/stat || [ -n "$stat" ]; } 2>/dev/null || return 1
  local -a fields=(${stat##*) })
  # Zombies execute nothing.
  [ "${fields[0]}" != Z ] || return 1
  REPLY=${fields[19]}
}

fire() {
  local pid left=1
  while [ $left = 1 ]; do
    left=0
    for pid in "${!held[@]}"; do
      # A number that another process has by now is none of ours.
      if start_time "$pid" && [ "$REPLY" = "${held[$pid]}" ]; then
        kill -KILL -- "-$pid" "$pid" || kill -KILL "$pid"
        left=1
      else
        unset "held[$pid]"
      fi
    done 2>/dev/null
    [ $left = 0 ] || read -r -t 0.01 <><(:) || :
  done
  exit 0
}

while :; do
  wait=1
  if [ $deadline -gt 0 ]; then
    now
    left=$((deadline - REPLY))
    if [ $left -le 0 ]; then
      # A guard that was frozen may have a later deadline waiting for it.
      read -r -t 0 || fire
      wait=1
    elif [ $left -lt 1000 ]; then
      printf -v wait '0.%03d' $left
    fi
  fi
  # In slices of a second: a wall clock that is set back must not lengthen the wait.
  IFS= read -r -t $wait line
  status=$?
  # Half a line at the end of a slice is kept for the next.
  partial+=$line
  if [ $status -gt 128 ]; then continue; fi
  [ $status = 0 ] || fire
  # Not by a here-string: before bash 5.1 that is a file, and a full disk would have the guard fall silent.
  words=($partial)
  order=${words[0]} first=${words[1]} second=${words[2]}
  partial=
  case $order in
    +)
      if start_time "$first" && [ "$REPLY" = "$second" ]; then
        held[$first]=$second
        echo "+ $first"
      else
        echo "! $first"
      fi
      ;;
    -) unset "held[$first]" ;;
    \?) echo "? $first" ;;
    =)
      deadline=$first
      echo "= $first"
      ;;
  esac
done
