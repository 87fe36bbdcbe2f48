# Copies one commit with its tree from a mirror into a new repository and writes its files, if they are not too much.
# $1: the mirror. $2: the commit. $3: the folder, whose .git holds nothing but its skeleton. $4: how many files it may have,
# $5: and how many bytes; beyond them the exit code is 65.
#
# A pack of its own: no hard link, and no path back into the mirror, so that a stage can do what it likes with it. What is
# missing from the copy is missed by read-tree, whichever part of the pipe failed.
set -eu
# A tree of few objects can stand for more files than any disk has, and a small object for a large file.
git --git-dir="$1" ls-tree -r -l --full-tree --end-of-options "$2" | head -n "$(($4 + 1))" |
  awk -v files="$4" -v bytes="$5" '{ sum += $4 } END { exit (NR > files || sum > bytes) ? 65 : 0 }'
git --git-dir="$1" rev-list --objects --no-walk --end-of-options "$2" |
  git --git-dir="$1" pack-objects --stdout -q --window=0 --delta-base-offset |
  git --git-dir="$3/.git" index-pack --stdin >/dev/null
exec git --git-dir="$3/.git" --work-tree="$3" read-tree --reset -u HEAD
