#!/bin/sh
# Makes what compose.yaml wants: secrets, the broker's configuration, and .env with the server's address.
#
#   sh deploy/compose/setup.sh https://ci.example.org [runner-1 runner-2 …]
set -eu
address=${1:?give the address under which browsers and git hosts reach the server, such as https://ci.example.org}
shift
[ $# -gt 0 ] || set -- runner-1
here=$(cd -- "$(dirname -- "$0")" && pwd)
sh "$here/../secrets.sh" "${PENSTOCK_SECRETS:-$here/secrets}" "$@"
printf 'PENSTOCK_URL=%s\n' "$address" >"${PENSTOCK_SETTINGS:-$here/../.env}"
