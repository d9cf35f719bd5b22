module kube-scheduler-operator.dev/hack/yardstick

go 1.25.0
