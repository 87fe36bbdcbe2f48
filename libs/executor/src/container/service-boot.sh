# What the first process of a service's container does before it becomes the service: it waits until the guard holds it.
exec 3<"$0/control" 5>"$0/out" 6>"$0/err" 7>"$0/life" </dev/null || exit 125
unset HOSTNAME TERM container OLDPWD
echo up >&7
read -r order <&3 || exit 125
exec 1>&5 2>&6 3>&- 5>&- 6>&-
exec "$@"
