#!/bin/sh
# Turns the mount and UTS namespaces that it was started in into those of a node, and stays to keep
# them. NODE is the host name, ROOT the node's own files, PATHS the places that they cover.
set -eu

hostname "$NODE"
mount --make-rprivate /

# The host's and the other nodes' network namespaces: a copy of their mounts would keep them alive.
umount --recursive --lazy /run/netns 2>/dev/null || true

for path in $PATHS; do
    mount --bind "$ROOT$path" "$path"
done

# The kubelet sets kernel parameters that belong to the whole machine. It finds what it wants.
set_parameter() {
    [ "$(cat "/proc/sys/$1")" != "$2" ] || return 0
    file="$ROOT/sys-$(basename "$1")"
    echo "$2" >"$file"
    mount --bind "$file" "/proc/sys/$1"
}
set_parameter vm/overcommit_memory 1
set_parameter vm/panic_on_oom 0
set_parameter kernel/panic 10
set_parameter kernel/panic_on_oops 1
set_parameter kernel/keys/root_maxkeys 1000000
set_parameter kernel/keys/root_maxbytes 25000000

mount --make-rshared /
touch "$ROOT/ready"
exec sleep infinity
