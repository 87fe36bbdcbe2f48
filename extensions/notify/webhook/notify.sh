#!/bin/sh
set -eu

fail() {
  printf 'webhook: %s\n' "$1" >&2
  exit 1
}

command -v curl > /dev/null 2>&1 || fail 'there is no curl on this machine'
case "$INPUT_URL" in
  http://?* | https://?*) ;;
  *) fail "'url' must begin with http:// or https://" ;;
esac
case "$INPUT_URL" in
  *[[:space:]]* | *[[:cntrl:]]*) fail "'url' holds blanks or control characters" ;;
esac
within() {
  case "$2" in
    '' | *[!0-9]*) fail "'$1' must be a whole number" ;;
  esac
  if [ "$2" -lt 1 ] || [ "$2" -gt "$3" ]; then fail "'$1' must be 1 to $3"; fi
}
within attempts "$INPUT_ATTEMPTS" 10
within timeout-seconds "$INPUT_TIMEOUT_SECONDS" 300

# A text as JSON, with its quotes. It comes by standard input: awk would read escapes in an argument.
json() {
  printf '%s' "$1" | LC_ALL=C awk '
    { text = text (NR > 1 ? "\\n" : "") escaped($0) }
    END { printf "\"%s\"", text }
    function escaped(line,    out, at, character, code) {
      out = ""
      for (at = 1; at <= length(line); at++) {
        character = substr(line, at, 1)
        if (character == "\\" || character == "\"") out = out "\\" character
        else if (character < " " || character == "\177") out = out sprintf("\\u%04x", index(controls, character) + offset(character))
        else out = out character
      }
      return out
    }
    function offset(character) { return character == "\177" ? 127 : 0 }
    BEGIN { for (code = 1; code < 32; code++) controls = controls sprintf("%c", code) }
  '
}

summary="$INPUT_MESSAGE"
if [ -n "$INPUT_STATUS" ]; then summary="$summary: $INPUT_STATUS"; fi
summary="$summary (${PENSTOCK_PIPELINE:-pipeline}, run ${PENSTOCK_RUN_ID:-unknown})"
case "$INPUT_FORMAT" in
  slack) body="{\"text\":$(json "$summary")}" ;;
  discord) body="{\"content\":$(json "$summary")}" ;;
  *)
    body="{\"message\":$(json "$INPUT_MESSAGE"),\"status\":$(json "$INPUT_STATUS"),\"pipeline\":$(json "${PENSTOCK_PIPELINE:-}"),\"run_id\":$(json "${PENSTOCK_RUN_ID:-}")"
    body="$body,\"stage\":$(json "${PENSTOCK_STAGE:-}"),\"repository\":$(json "${PENSTOCK_REPOSITORY:-}"),\"ref\":$(json "${PENSTOCK_REF:-}"),\"commit\":$(json "${PENSTOCK_COMMIT:-}")}"
    ;;
esac

# The address may hold a secret, so it goes to curl by standard input and not by an argument, and is not printed.
quoted_url=$(printf '%s' "$INPUT_URL" | sed 's/[\\"]/\\&/g')
request() {
  printf 'url = "%s"\n' "$quoted_url" | curl --config - --globoff --silent --output /dev/null --write-out '%{http_code}' \
    --proto '=http,https' --max-time "$INPUT_TIMEOUT_SECONDS" --header 'Content-Type: application/json' --data-binary "$body" || :
}

attempt=1
while :; do
  code=$(request)
  case "$code" in
    2??) break ;;
    # What a receiver refuses it will refuse again.
    4??) if [ "$code" != 408 ] && [ "$code" != 429 ]; then break; fi ;;
  esac
  if [ "$attempt" -ge "$INPUT_ATTEMPTS" ]; then break; fi
  sleep "$attempt"
  attempt=$((attempt + 1))
done

printf 'status-code=%s\n' "${code:-000}" >> "$SERVICE_OUTPUT"
case "$code" in
  2??) printf 'Told (%s)\n' "$code" ;;
  *)
    if [ "${code:-000}" = 000 ]; then why='it cannot be reached or does not answer'; else why="it answers $code"; fi
    printf 'webhook: the receiver could not be told: %s\n' "$why" >&2
    if [ "$INPUT_MUST_SUCCEED" = true ]; then exit 1; fi
    ;;
esac
