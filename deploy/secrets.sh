#!/bin/sh
# Makes the broker's configuration and a file for each secret of an installation in one folder; what is there already is kept, so
# that it can be called again, with more runners for instance. `compose/setup.sh` and `k8s/setup.sh` call it.
#
#   sh deploy/secrets.sh <folder> <runner> [<runner> …]
#
# The broker is `nats:4222` and the database `mongodb:27017`, as both name them.
set -eu
engine=${CONTAINER_ENGINE:-docker}
secrets=$1
shift
umask 077
mkdir -p "$secrets/nats"
# Also where it was there before.
chmod 0700 "$secrets"
secrets=$(cd -- "$secrets" && pwd)

# A container's user is not ours, so what one is given has to be readable; the folder above it is ours alone.
keep() {
  if [ ! -s "$secrets/$1" ]; then
    printf %s "$2" >"$secrets/$1.new"
    mv "$secrets/$1.new" "$secrets/$1"
  fi
  chmod 0644 "$secrets/$1"
}
random() {
  head -c "$1" /dev/urandom | base64 | tr -d '\n'
}
word() {
  random 24 | tr '+/' '-_'
}

generate() {
  if [ -n "${PENSTOCK_GENERATE:-}" ]; then
    $PENSTOCK_GENERATE "$@"
  else
    $engine run --rm --user "$(id -u):$(id -g)" --volume "$secrets/nats:/out" --entrypoint node penstock /opt/penstock/deploy/nats/generate.ts --out /out "$@"
  fi
}
generate --runners "$(echo "$*" | tr ' ' ,)"
chmod 0644 "$secrets/nats/nats.conf" "$secrets/nats/accounts.conf"
for file in "$secrets"/nats/credentials/*; do
  user=${file##*/}
  keep "nats-${user#runner_}" "nats://$user:$(cat "$file")@nats:4222"
done
keep jwt-secret "$(random 48)"
keep api-key "$(word)"
keep admin-key "$(word)"
keep master-key "$(random 32)"
keep slip-key "$(random 32)"
keep webhook-secret "$(word)"
keep mongodb-password "$(word)"
keep store-url "mongodb://penstock:$(cat "$secrets/mongodb-password")@mongodb:27017/penstock?authSource=admin"
echo "The secrets are in $secrets: keep a copy of master-key apart from the database's."
