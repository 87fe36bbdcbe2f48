#!/bin/sh
set -eu

case "$INPUT_SHOW" in
  '' | *[!0-9]*)
    printf "junit: 'show' must be a whole number\n" >&2
    exit 1
    ;;
esac

# Of the unquoted value only patterns are filled in, and only line breaks divide it.
IFS='
'
set -- $INPUT_FILES
unset IFS
for file in "$@"; do
  if [ ! -f "$file" ]; then
    printf 'junit: there is no report %s\n' "$file" >&2
    exit 1
  fi
  if [ ! -s "$file" ]; then
    printf 'junit: %s is empty\n' "$file" >&2
    exit 1
  fi
done
if [ $# -eq 0 ]; then
  printf "junit: 'files' names no report\n" >&2
  exit 1
fi

# awk takes a name with = in it for a variable, and one that begins with - for an option; a path with / is neither.
for file in "$@"; do
  shift
  case "$file" in
    /*) set -- "$@" "$file" ;;
    *) set -- "$@" "./$file" ;;
  esac
done

counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
LC_ALL=C awk -v show="$INPUT_SHOW" -v counts="$counts" -f "$SERVICE_EXTENSION_PATH/junit.awk" "$@"
cat "$counts" >> "$SERVICE_OUTPUT"
failed=$(sed -n 's/^failed=//p' "$counts")
if [ "$INPUT_FAIL_ON" = failures ] && [ "$failed" -gt 0 ]; then exit 1; fi
