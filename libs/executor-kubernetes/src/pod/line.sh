# One line between a stage's guard and its runner, by `exec` into the guard's container: what comes in are orders, what goes out are blocks
# of output (on 1) and answers (on 2). A new line ends the one before it; what was sent and not taken is sent again.
#
#   in:   "attach <out> <err>" blocks up to these were taken: send from there     "ack <stream> <n>" so many blocks were taken
#         "ask" the time is asked for, to be answered by "until <ms>"
#         "put <name> <mark> <bytes>" so many bytes of lines, and then what stands behind the name once more
#         "file <name> <text>" the text, from now on     "go", "stop <ms>", "bye" are for the guard
#   out:  on 2: "hello <uid> <state>", "ask <ms>"; on 1: "blocks <stream> <first> <count>", so many lines of `wc -c`, "data" and the bytes;
#         "masks <size>" and the bytes that the file of the masks holds, before what was printed after them;
#         "outputs <size>" and the bytes; "done <code> <cause>"
umask 077
cd /penstock || exit 70
trap '' TERM INT HUP
{ read -r uid && IFS= read -r mask; } <settings
exec 9<>pipes/wake 7<>note 5<>token.out 6<>token.err
# The shell of a line, and the one that sends for it.
if [ -e line.pid ]; then
  while read -r old; do kill -KILL $old 2>/dev/null; done <line.pid
fi
# Before anything is told: it may be ended in the middle of that.
echo $$ >line.pid
rm -f put.* masks.*
# So many blocks have made room for others.
taken_out=0 taken_err=0
[ ! -e taken.out ] || while read -r taken; do taken_out=$taken; done <taken.out
[ ! -e taken.err ] || while read -r taken; do taken_err=$taken; done <taken.err

ask() {
  read -r up _ </proc/uptime
  part=${up#*.}
  echo "ask $((${up%.*} * 1000 + (1$part - 100) * 10))" >&2
}

# The blocks of a stream that are whole, at most 16, from the next one to be sent.
blocks() { # <stream> <next>
  files= count=0
  while [ -e $1.$(($2 + count + 1)) ] && [ $count -lt 16 ]; do
    files="$files $1.$(($2 + count))"
    count=$((count + 1))
  done
  [ $count -gt 0 ] || return 1
  masks
  echo "blocks $1 $2 $count"
  wc -c $files
  echo data
  cat $files
}

# One byte more than is read of it, so that too much is seen. Nothing is followed. Into a file of this line's own: what reads it for a line
# that was ended may write on.
masks() {
  [ -n "$mask" ] && [ -s "$mask" ] && [ -f "$mask" ] && [ ! -L "$mask" ] || return 0
  head -c 65537 "$mask" >masks.$$ 2>/dev/null
  # A value in the place of another may be as long.
  sum=$(cksum <masks.$$)
  if [ -n "$sum" ] && [ "$sum" = "$masked" ]; then return 0; fi
  masked=$sum
  echo "masks $(wc -c <masks.$$)"
  cat masks.$$
}

is_sent() { # <stream> <next>
  [ -s $1.end ] && read -r all <$1.end && [ "$2" -ge "$all" ]
}

send() {
  out=$1 err=$2 told= masked=
  while :; do
    if blocks out $out; then out=$((out + count)) && continue; fi
    if blocks err $err; then err=$((err + count)) && continue; fi
    if [ -z "$told" ] && [ -e done ] && is_sent out $out && is_sent err $err; then
      read -r _ code cause <state
      masks
      echo "outputs $(wc -c <outputs)"
      cat outputs
      echo "done $code $cause"
      told=1
    fi
    read -r _ <&7
    # A line that was ended before it could say who sends for it: what has woken this is for the next one.
    read -r owner <line.pid && [ "$owner" = $$ ] || { echo >&7 && exit; }
  done
}

read -r state <state
echo "hello $uid $state" >&2
ask
sender=
while read -r order first second; do
  case $order in
    attach)
      send "$first" "$second" &
      sender=$!
      echo $sender >>line.pid
      ;;
    ack)
      # The first window of blocks needed no token.
      if [ "$first" = out ]; then taken=$taken_out; else taken=$taken_err; fi
      files=
      while [ $taken -lt "$second" ]; do
        files="$files $first.$taken"
        taken=$((taken + 1))
        if [ "$first" = out ]; then echo >&5; else echo >&6; fi
      done
      if [ -n "$files" ]; then
        # A line more, for who is ended while it writes anew has none: the room of all of them would be given again.
        echo $taken >>taken.$first
        rm -f $files
      fi
      if [ "$first" = out ]; then taken_out=$taken; else taken_err=$taken; fi
      ;;
    ask) ask ;;
    until) echo "until $first" >&9 ;;
    put)
      # Under a name of this line's own until it is whole: what has read for a line that was ended may write on.
      part=put.$$
      # For the stage's user to read; nobody else has this folder.
      umask 022
      : >$part
      # A shell reads byte by byte, which takes minutes of a large job on a full node: all but the mark is another program's to read.
      size=0
      while [ "$size" -lt "${second##* }" ]; do
        before=$size
        dd bs=$((${second##* } - size)) count=1 2>/dev/null >>$part
        size=$(wc -c <$part)
        [ "$size" -gt "$before" ] || break
      done
      while IFS= read -r text && [ "$text" != "$second" ]; do printf '%s\n' "$text"; done >>$part
      umask 077
      [ "$text" != "$second" ] || mv $part "$first"
      ;;
    file)
      # Who reads it meanwhile has the whole of the one before.
      umask 022
      printf %s "$second" >file.new && mv file.new "$first"
      umask 077
      ;;
    go) mv job.new job && echo go >&9 ;;
    stop | bye) echo "$order $first" >&9 ;;
  esac
done
[ -z "$sender" ] || kill -KILL "$sender" 2>/dev/null
