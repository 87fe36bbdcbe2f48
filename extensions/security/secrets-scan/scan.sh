#!/bin/sh
# Finds by rules.txt, one `name<TAB>extended regular expression` a line. No line of a file is ever printed: a log is
# read by more people than a repository.
set -eu

fail() {
  printf 'secrets-scan: %s\n' "$1" >&2
  exit 1
}

case "$INPUT_SHOW" in
  '' | *[!0-9]*) fail "'show' must be a whole number" ;;
esac
path=$INPUT_PATH
case "$path" in
  '') path=. ;;
  /*) fail "'path' must stay within the workspace" ;;
  -*) path=./$path ;;
esac
[ -e "$path" ] || fail "there is no $path here"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tab=$(printf '\t')
cut -f 2- "$SERVICE_EXTENSION_PATH/rules.txt" > "$scratch/patterns"

# What git knows, or all files where there is no repository. Links are not followed.
if git -C . rev-parse --is-inside-work-tree > /dev/null 2>&1; then
  git ls-files -z --cached --others --exclude-standard -- "$path" > "$scratch/files"
else
  find "$path" -type d \( -name .git -o -name node_modules \) -prune -o -type f -print0 > "$scratch/files"
fi

# One pass for the files that have anything at all; they are few.
LC_ALL=C xargs -0 grep -lIE -f "$scratch/patterns" -- /dev/null < "$scratch/files" > "$scratch/suspects" 2> "$scratch/errors" || :

allowed() {
  [ -f "$INPUT_ALLOW_FILE" ] || return 1
  while IFS= read -r pattern || [ -n "$pattern" ]; do
    case "$pattern" in
      '' | '#'*) continue ;;
    esac
    # Unquoted: it is a pattern for a path, as a shell has them.
    case "$1" in
      $pattern) return 0 ;;
    esac
  done < "$INPUT_ALLOW_FILE"
  return 1
}

: > "$scratch/findings"
files=0
while IFS= read -r file; do
  [ -f "$file" ] && [ ! -L "$file" ] || continue
  if allowed "${file#./}"; then continue; fi
  files=$((files + 1))
  while IFS="$tab" read -r rule pattern; do
    LC_ALL=C grep -nE -e "$pattern" -- "$file" | LC_ALL=C cut -d : -f 1 | while IFS= read -r line; do
      printf '%s:%s: %s\n' "${file#./}" "$line" "$rule"
    done
  done < "$SERVICE_EXTENSION_PATH/rules.txt" >> "$scratch/findings"
done < "$scratch/suspects"

findings=$(($(wc -l < "$scratch/findings")))
# A name can hold anything, a log takes text.
head -n "$INPUT_SHOW" "$scratch/findings" | tr -d '\000-\010\013-\037\177'
if [ "$findings" -gt "$INPUT_SHOW" ]; then printf '… and %d more\n' $((findings - INPUT_SHOW)); fi
printf '%d findings in %d files\n' "$findings" "$files"
{
  printf 'findings=%d\n' "$findings"
  printf 'files=%d\n' "$files"
} >> "$SERVICE_OUTPUT"
if [ "$INPUT_FAIL_ON" = findings ] && [ "$findings" -gt 0 ]; then exit 1; fi
