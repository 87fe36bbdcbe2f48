# Copies one commit with its tree from a mirror into a new repository and writes its files.
# $1: the mirror. $2: the commit. $3: the folder, whose .git holds nothing but its skeleton.
#
# A pack of its own: no hard link, and no path back into the mirror, so that a stage can do what it likes with it. What is
# missing from the copy is missed by read-tree, whichever part of the pipe failed.
set -eu
git --git-dir="$1" rev-list --objects --no-walk --end-of-options "$2" |
  git --git-dir="$1" pack-objects --stdout -q --window=0 --delta-base-offset |
  git --git-dir="$3/.git" index-pack --stdin >/dev/null
exec git --git-dir="$3/.git" --work-tree="$3" read-tree --reset -u HEAD
