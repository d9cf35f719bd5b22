module kube-scheduler-operator.dev/hack/volcano-decoder

go 1.25.0

require (
	gopkg.in/yaml.v2 v2.4.0
	volcano.sh/volcano v1.15.1
)
