#!/bin/sh
# Makes what compose.yaml wants: secrets, the broker's configuration, and .env with the server's address.
#
#   sh deploy/compose/setup.sh https://ci.example.org [runner-1 runner-2 …]
#
# Called again, it keeps secrets and all other lines of .env, such as those of the identity provider.
set -eu
address=${1:?give the address under which browsers and git hosts reach the server, such as https://ci.example.org}
shift
[ $# -gt 0 ] || set -- runner-1
here=$(cd -- "$(dirname -- "$0")" && pwd)
sh "$here/../secrets.sh" "${PENSTOCK_SECRETS:-$here/secrets}" "$@"
settings=${PENSTOCK_SETTINGS:-$here/../.env}
umask 077
{
  printf 'PENSTOCK_URL=%s\n' "$address"
  [ ! -f "$settings" ] || sed '/^PENSTOCK_URL=/d' "$settings"
} >"$settings.new"
mv "$settings.new" "$settings"
