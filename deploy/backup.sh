#!/bin/sh
# Copies what services that run apart keep, while they run, in the order in which nothing is missing: the database, the broker's streams, and
# objects where the broker keeps them (docs/operating.md, "Back up and restore").
#
#   SERVICE_STORE_URL=mongodb://… SERVICE_NATS_URL=nats://backup:…@nats:4222 sh deploy/backup.sh <folder>
#
# With mongodump (or sqlite3, for a file) and nats on the PATH. Certificates of the broker: the variables of nats (NATS_CA, …).
set -eu
umask 077
folder=${1:?name a folder that is empty or not there yet}
: "${SERVICE_STORE_URL:?is the address of the database, as the services have it}"
: "${SERVICE_NATS_URL:?is the address of the broker, with the user backup}"
refuse() {
  echo "backup: $1" >&2
  exit 1
}
# From the folder where this was called, which is left below.
case $SERVICE_STORE_URL in sqlite:/*) ;; sqlite:*) SERVICE_STORE_URL=sqlite:$PWD/${SERVICE_STORE_URL#sqlite:} ;; esac
for name in NATS_CA NATS_CERT NATS_KEY; do
  eval "file=\${$name:-}"
  case $file in '' | /*) ;; *) export "$name=$PWD/$file" ;; esac
done
for tool in nats "$(case $SERVICE_STORE_URL in mongodb*) echo mongodump ;; *) echo sqlite3 ;; esac)"; do
  command -v "$tool" >/dev/null || refuse "there is no $tool on the PATH"
done
[ -z "$(ls -A "$folder" 2>/dev/null || true)" ] || refuse "the folder $folder is not empty"
mkdir -p "$folder/broker"
cd "$folder"
: >incomplete

# Nothing secret stands in the arguments of a program, which others on this machine can read.
broker() {
  NATS_URL=$SERVICE_NATS_URL nats --inbox-prefix "_INBOX_$user" "$@" || refuse "nats $1 $2 has failed"
}
user=$(printf %s "$SERVICE_NATS_URL" | sed -n 's#^[a-z]*://\([^:@/]*\):.*@.*#\1#p')
user=${user:-backup}
# What is projected leaves a journal that is half full, and another one after two hours: then no copy of the database fits it any more.
journal_keeps() {
  described=$(broker stream info JOURNAL --json)
  described=$(printf %s "$described" | tr -d ' \n')
  size=$(printf %s "$described" | sed -n 's/.*"max_bytes":\([0-9][0-9]*\).*/\1/p')
  used=$(printf %s "$described" | sed -n 's/.*"state":{[^}]*"bytes":\([0-9][0-9]*\).*/\1/p')
  [ -n "$size" ] && [ -n "$used" ] || refuse 'nats does not tell how full JOURNAL is: is it the broker of Penstock?'
  [ "$((used * 2))" -lt "$size" ] || refuse 'JOURNAL is half full, so that what is written is purged at once: try again when the database has caught up'
}
# Earlier releases of nats have the other words.
copy='stream backup'
nats backup stream --help 2>&1 | grep -q 'backup of a stream' && copy='backup stream'
stream() {
  echo "stream $1"
  # shellcheck disable=SC2086
  broker $copy "$1" "broker/$1" --no-progress >/dev/null
}

streams=$(broker stream ls --all --names)
journal_keeps
begun=$(date +%s)
case $SERVICE_STORE_URL in
mongodb*)
  database=$(printf %s "$SERVICE_STORE_URL" | sed -e 's#^[^:]*://##' -e 's#^.*@##' -e 's#^[^/?]*##' -e 's#?.*$##' -e 's#^/##')
  trap 'rm -f connection.yaml' EXIT
  printf 'uri: "%s"\n' "$SERVICE_STORE_URL" >connection.yaml
  printf '%s\n' "${database:=penstock}" >database
  dump() {
    mongodump --config connection.yaml --db "$database" --gzip "$@" || refuse 'mongodump has failed'
  }
  echo 'database'
  # First of all how far the journal is written to it: what the rest has beyond that, the journal has as well.
  dump --archive=checkpoints.gz --collection=checkpoints
  dump --archive=store.gz --excludeCollection=checkpoints
  rm connection.yaml
  ;;
sqlite:*)
  echo 'database'
  sqlite3 -readonly "${SERVICE_STORE_URL#sqlite:}" "VACUUM INTO 'store.sqlite'" || refuse 'sqlite3 has failed'
  ;;
*) refuse 'the address of the database begins with neither mongodb nor sqlite:' ;;
esac
# Deliveries before the journal, which has the runs that they have become; logs after it. Who is a member or holds a lease does not live on.
for name in $streams; do
  case $name in JOURNAL | LOGS | KV_members | KV_runners | KV_fleet | OBJ_*) ;; *) stream "$name" ;; esac
done
[ "$(($(date +%s) - begun))" -lt 6600 ] || refuse 'it took almost two hours to copy the database: the journal may not go back as far'
stream JOURNAL
journal_keeps
stream LOGS
[ "$(($(date +%s) - begun))" -lt 3300 ] || echo 'It took almost an hour: logs of runs that were archived meanwhile may be missing.' >&2
for name in $streams; do
  case $name in OBJ_*) stream "$name" ;; esac
done
find . -type f ! -name incomplete ! -name SHA256SUMS | sort | while read -r file; do sha256sum "$file" || exit 1; done >SHA256SUMS
rm incomplete
echo "$folder is a whole backup. Not in it: objects that are kept in a folder or in S3, SERVICE_MASTER_KEY, the secrets of the services."
