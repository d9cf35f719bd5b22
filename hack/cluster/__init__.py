"""A real Kubernetes cluster on one Linux machine, without a container engine or a registry.

kind and minikube need a container engine and pull images; a laptop behind a proxy, a CI job in a
container and a development VM often have neither. This package needs root, a few distribution
packages and the Kubernetes binaries, which it downloads or, where that is impossible, builds from
Go modules. etcd, kube-apiserver and kube-controller-manager run as processes of the host; every
node is a set of namespaces with its own containerd, kubelet and ``/etc/kubernetes``, laid out as
kubeadm would have made it, so what the operator does to static pods here is what it does anywhere.

Only the standard library is used: the sandbox is what prepares a machine, so nothing has been
prepared when it starts.
"""
