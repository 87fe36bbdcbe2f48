#!/bin/sh
# Makes what k8s/overlays/single wants: secrets, the broker's configuration with users for four runners, and settings.
#
#   sh k8s/setup.sh https://ci.example.org
set -eu
address=${1:?give the address under which browsers and git hosts reach the server, such as https://ci.example.org}
here=$(cd -- "$(dirname -- "$0")" && pwd)
overlay=${PENSTOCK_OVERLAY:-$here/overlays/single}
sh "$here/../deploy/secrets.sh" "$overlay/secrets" runner-0 runner-1 runner-2 runner-3
[ -s "$overlay/settings.env" ] || cat >"$overlay/settings.env" <<SETTINGS
SERVICE_BASE_URL=$address
SERVICE_MODE=production
SERVICE_LISTEN=0.0.0.0:8080
SERVICE_INTERNAL_LISTEN=0.0.0.0:9090
SERVICE_OBJECTS_URL=nats:
SERVICE_PARTITIONS=16
SERVICE_RUNNER_LEASE_SECS=60
SERVICE_TRUST_PROXY=10.0.0.0/8,172.16.0.0/12,192.168.0.0/16
SETTINGS
echo "Settings, to be added to: $overlay/settings.env"
