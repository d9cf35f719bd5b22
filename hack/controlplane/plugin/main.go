// Command plugin is a kube-scheduler with a plugin of its own, as users build theirs: it prefers the
// nodes whose names are long.
package main

import (
	"context"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const name = "LongName"

type longName struct{}

func (longName) Name() string { return name }

func (longName) ScoreExtensions() framework.ScoreExtensions { return nil }

// Score is the length of the node's name, up to the highest score of a plugin.
func (longName) Score(_ context.Context, _ framework.CycleState, _ *v1.Pod, node framework.NodeInfo) (int64, *framework.Status) {
	return min(int64(len(node.Node().Name)), framework.MaxNodeScore), nil
}

func create(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) {
	return longName{}, nil
}

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(name, create))))
}
