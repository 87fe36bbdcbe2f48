#!/usr/bin/env bash
# Builds KEDA's operator and its server of metrics from its Go module, where no image of them is to be had, beside the manifests of that module:
# <folder>/bin/keda, <folder>/bin/keda-adapter, <folder>/config.
#
#   build.sh <folder> [v2.21.0]
set -euo pipefail
mkdir -p "$1/bin"
folder=$(cd "$1" && pwd) version=${2:-v2.21.0}
# `go install` refuses a module that replaces others: it is built from its own source.
source=$(cd / && go mod download -json "github.com/kedacore/keda/v2@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
rm -rf "$folder/source"
cp -r "$source" "$folder/source"
chmod -R u+w "$folder/source"
cp -r "$folder/source/config" "$folder/"
cd "$folder/source"
for each in operator:keda adapter:keda-adapter; do
  CGO_ENABLED=0 go build -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w -X github.com/kedacore/keda/v2/version.Version=$version" \
    -o "$folder/bin/${each#*:}" "./cmd/${each%:*}"
done
