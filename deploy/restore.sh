#!/bin/sh
# Puts back what deploy/backup.sh has copied: into a broker without streams and a database that may be overwritten, all services stopped
# (docs/operating.md, "Back up and restore").
#
#   SERVICE_STORE_URL=mongodb://… SERVICE_NATS_URL=nats://backup:…@nats:4222 sh deploy/restore.sh <folder>
#
# With mongorestore (or nothing more, for a file) and nats on the PATH. Certificates of the broker: the variables of nats (NATS_CA, …).
set -eu
umask 077
folder=${1:?name the folder of the backup}
: "${SERVICE_STORE_URL:?is the address of the database, as the services are to have it}"
: "${SERVICE_NATS_URL:?is the address of the broker, with the user backup}"
refuse() {
  echo "restore: $1" >&2
  exit 1
}
# From the folder where this was called, which is left below.
case $SERVICE_STORE_URL in sqlite:/*) ;; sqlite:*) SERVICE_STORE_URL=sqlite:$PWD/${SERVICE_STORE_URL#sqlite:} ;; esac
for name in NATS_CA NATS_CERT NATS_KEY; do
  eval "file=\${$name:-}"
  case $file in '' | /*) ;; *) export "$name=$PWD/$file" ;; esac
done
cd "$folder"
[ -f SHA256SUMS ] && [ ! -e incomplete ] || refuse "the folder $folder has no whole backup"
sha256sum --check --quiet SHA256SUMS || refuse 'the backup was changed since it was made'
user=$(printf %s "$SERVICE_NATS_URL" | sed -n 's#^[a-z]*://\([^:@/]*\):.*@.*#\1#p')
user=${user:-backup}
broker() {
  NATS_URL=$SERVICE_NATS_URL nats --inbox-prefix "_INBOX_$user" "$@" || refuse "nats $1 $2 has failed"
}
there=$(broker stream ls --all --names)
for name in broker/*; do
  case " $(echo "$there" | tr '\n' ' ') " in *" ${name#broker/} "*) refuse "the broker has a stream ${name#broker/} already: stop it and empty its store" ;; esac
done
case $SERVICE_STORE_URL in
mongodb*)
  [ -f store.gz ] || refuse 'the backup is not one of MongoDB'
  settings=$(mktemp)
  trap 'rm -f "$settings"' EXIT
  printf 'uri: "%s"\n' "$SERVICE_STORE_URL" >"$settings"
  database=$(printf %s "$SERVICE_STORE_URL" | sed -e 's#^[^:]*://##' -e 's#^.*@##' -e 's#^[^/?]*##' -e 's#?.*$##' -e 's#^/##')
  from=$(cat database)
  for archive in store.gz checkpoints.gz; do
    echo "database: $archive"
    mongorestore --config "$settings" --gzip --drop "--archive=$archive" --nsFrom "$from.*" --nsTo "${database:-penstock}.*" || refuse 'mongorestore has failed'
  done
  ;;
sqlite:*)
  [ -f store.sqlite ] || refuse 'the backup is not one of SQLite'
  path=${SERVICE_STORE_URL#sqlite:}
  [ ! -e "$path" ] || refuse "there is a file $path already"
  # Half of it, where the disk is full, would be taken for all of it.
  cp store.sqlite "$path.new" && mv "$path.new" "$path" || refuse "the database cannot be written to $path"
  ;;
*) refuse 'the address of the database begins with neither mongodb nor sqlite:' ;;
esac
# Earlier releases of nats have the other words.
put='stream restore'
nats backup restore stream --help 2>&1 | grep -q 'Restore a stream' && put='backup restore stream'
for name in broker/*; do
  echo "stream ${name#broker/}"
  # shellcheck disable=SC2086
  broker $put "$name" --no-progress >/dev/null
done
echo 'Restored. Run the set-up of the broker where it has users, then start the services, with the secrets that they had.'
