#!/bin/sh
# Every value comes by the environment and is data: none becomes an option, a transport or a part of this script.
set -eu

fail() {
  printf 'checkout: %s\n' "$1" >&2
  exit 1
}

# Only what git can read without running another program; ext:: and the like stay off.
GIT_ALLOW_PROTOCOL="${GIT_ALLOW_PROTOCOL:-https:http:ssh:git:file}"
GIT_TERMINAL_PROMPT=0
export GIT_ALLOW_PROTOCOL GIT_TERMINAL_PROMPT
command -v git > /dev/null 2>&1 || fail 'there is no git on this machine'

path=$INPUT_PATH
case "/$path/" in
  //*) [ -z "$path" ] || fail "'path' must stay within the workspace" ;;
  */../*) fail "'path' must stay within the workspace" ;;
esac
case "$path" in
  '') path=. ;;
  -*) path=./$path ;;
esac
case "$INPUT_DEPTH" in
  '' | *[!0-9]*) fail "'depth' must be a whole number" ;;
esac
case "$INPUT_REF" in
  -* | *:* | *' '* | *..*) fail "'ref' is no branch, tag or commit" ;;
esac

if [ -z "$INPUT_REPOSITORY" ]; then
  # A run of a repository begins with its commit in the workspace; here there is only something to say.
  git -C "$path" rev-parse --verify --quiet 'HEAD^{commit}' > /dev/null 2>&1 \
    || fail "there is no commit in the workspace, and no 'repository' was given"
  if [ -n "$INPUT_REF" ]; then
    git -C "$path" checkout --quiet --detach "$INPUT_REF" -- || fail "cannot check out $INPUT_REF"
  fi
else
  case "$INPUT_REPOSITORY" in
    -* | *::*) fail "'repository' is no address of a repository" ;;
  esac
  if [ -e "$path" ] && [ -n "$(ls -A -- "$path")" ]; then
    fail "the folder $path is not empty: give another 'path'"
  fi
  mkdir -p -- "$path"
  git -C "$path" -c init.defaultBranch=main init --quiet
  git -C "$path" remote add -- origin "$INPUT_REPOSITORY"
  set -- --quiet --no-tags
  if [ "$INPUT_DEPTH" -gt 0 ]; then set -- "$@" "--depth=$INPUT_DEPTH"; fi
  git -C "$path" fetch "$@" -- origin "${INPUT_REF:-HEAD}" || fail "cannot fetch ${INPUT_REF:-the default branch}"
  git -C "$path" -c advice.detachedHead=false checkout --quiet --detach FETCH_HEAD
fi

if [ "$INPUT_SUBMODULES" = true ]; then
  set -- --init --recursive
  if [ "$INPUT_DEPTH" -gt 0 ]; then set -- "$@" "--depth=$INPUT_DEPTH"; fi
  git -C "$path" submodule --quiet update "$@" || fail 'cannot check out the submodules'
fi

commit=$(git -C "$path" rev-parse HEAD)
short=$(printf '%.12s' "$commit")
# A message can hold anything; an output is one line of text.
subject=$(git -C "$path" log -1 --format=%s | tr -d '\000-\037\177' | cut -c 1-200)
printf 'At %s %s\n' "$short" "$subject"
{
  printf 'commit=%s\n' "$commit"
  printf 'short-commit=%s\n' "$short"
  printf 'subject=%s\n' "$subject"
} >> "$SERVICE_OUTPUT"
