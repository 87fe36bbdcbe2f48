# Copies one commit with its tree from a mirror into a new repository and writes its files, if they are not too much.
# $1: the mirror, and $2 its objects as git's environment names them. $3: the commit. $4: the folder, whose .git holds nothing
# but its skeleton. $5: how many files it may have, $6: and how many bytes; beyond them the exit code is 65.
#
# A pack of its own: no hard link, and no path back into the mirror, so that a stage can do what it likes with it. It is written
# from within the new repository, which sees the mirror's objects meanwhile: what is packed there is taken over as it is, with its
# checksum looked at, and not unpacked to be understood once more. What is missing from the copy is missed by read-tree,
# whichever part of the pipe failed. Nothing here outlives its machine, so nothing waits for the disk.
set -eu
# A tree of few objects can stand for more files than any disk has, and a small object for a large file.
git --git-dir="$1" ls-tree -r -l --full-tree --end-of-options "$3" | head -n "$(($5 + 1))" |
  awk -v files="$5" -v bytes="$6" '{ sum += $4 } END { exit (NR > files || sum > bytes) ? 65 : 0 }'
git --git-dir="$1" rev-list --objects --no-walk --end-of-options "$3" |
  GIT_ALTERNATE_OBJECT_DIRECTORIES="$2" git --git-dir="$4/.git" -c core.fsync=none pack-objects -q --window=0 \
    --delta-base-offset "$4/.git/objects/pack/pack" >/dev/null
exec git --git-dir="$4/.git" --work-tree="$4" -c core.fsync=none read-tree --reset -u HEAD
