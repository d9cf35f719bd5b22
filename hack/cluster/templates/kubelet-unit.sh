#!/bin/sh
# The systemd unit of the kubelet that comes with kubeadm, without systemd: it waits for the files
# that kubeadm writes, and starts the kubelet ($1) with the flags in them.
set -eu

folder=/etc/kubernetes
until [ -s /var/lib/kubelet/config.yaml ] &&
    { [ -s $folder/kubelet.conf ] || [ -s $folder/bootstrap-kubelet.conf ]; }; do
    sleep 0.1
done
. /var/lib/kubelet/kubeadm-flags.env
# shellcheck disable=SC2086 # several words
exec "$1" --bootstrap-kubeconfig=$folder/bootstrap-kubelet.conf --kubeconfig=$folder/kubelet.conf \
    --config=/var/lib/kubelet/config.yaml ${KUBELET_KUBEADM_ARGS:-}
