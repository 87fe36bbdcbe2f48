# Makes the namespaces that a helper lives in, then becomes what starts it.
#
#   launch outer <wait> <stack> <shell> <text> <rules> <keep> … in the owner's network, in a user namespace
#   launch inner <net> <rules> <keep> <work> <tmp> <shm> <helper's command>… in namespaces of its own
#
# `work`, `tmp` and `shm` are where what belongs to one run is mounted, and taken away again, while the helper lives: it sees
# these three change, and has no right to change them. Empty: its stages see what the owner sees.
#
# Beside the helper's descriptors (helper.sh): 7 the owner's orders about mounts, one a line; 8 a table of mounts, a file
# without a name; 9 a pipe to itself.

if [ "$1" = outer ]; then
  # The owner writes the maps of users: nobody here may.
  if [ -n "$2" ]; then
    echo map >&3
    read -r _ <&3 || exit 71
  fi
  stack=$3 shell=$4 text=$5
  shift 5
  if [ -n "$stack" ]; then
    # Until the namespace is there it lives as long as this process; then until the owner closes its end of 7, however that
    # comes about. The owner is told when it is up: 8 is 7 once more, for it closes what it has told by.
    setpriv --pdeathsig KILL -- "$shell" -c '
      read -r _ <&9
      exec slirp4netns --configure --mtu=65520 --cidr="$1" --disable-host-loopback --enable-sandbox --enable-seccomp \
        --exit-fd=7 --ready-fd=8 "$2" tap0 9>&-
    ' stack "$stack" $$ </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 8>&7 &
    exec unshare --net --mount --propagation private -- "$shell" -c "$text" launch inner net "$@"
  fi
  exec unshare --mount --propagation private -- "$shell" -c "$text" launch inner '' "$@"
fi

net=$2 rules=$3 keep=$4 work=$5 tmp=$6 shm=$7
shift 7
if [ -n "$net" ]; then
  # Before anything can be sent: who has no right to change them can send nothing that they refuse.
  nft "$rules" || exit 72
  echo go >&9
fi
# What will be under a cover stays within reach of this folder.
cd "${keep:-/}" || exit 71
mount -n -c -a -T /proc/self/fd/8 || exit 71

if [ -n "$work" ]; then
  (
    exec 3>&- 4>&- 5>&- 6>&- 9>&-
    bound=
    while read -r _ <&7; do
      # What one run has seen is out of the way before the next one sees anything.
      if [ -z "$bound" ] || umount -n -l -c "$work" "$tmp" "$shm" && mount -n -c -a -T /proc/self/fd/8; then
        bound=1
        echo bound >&7
      else
        echo failed >&7
        exit 1
      fi
    done
  ) </dev/null &
fi
exec "$@" 7>&- 8>&- 9>&-
