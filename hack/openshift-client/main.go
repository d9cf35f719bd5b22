// Command openshift-client uses OpenShift's three kinds as programs in Go do: through the typed
// clients of github.com/openshift/client-go. A typed client writes every field without omitempty,
// also unset ones, so definitions of the kinds have to accept zero values.
//
// Its only argument is the path of a kubeconfig. It prints one line of JSON for each step:
// {"step": "KubeScheduler cluster: update unchanged", "error": ""}. The exit status is 0 even if a
// step fails; it is not 0 if the program cannot be used at all.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	config "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	applyoperator "github.com/openshift/client-go/operator/applyconfigurations/operator/v1"
	operator "github.com/openshift/client-go/operator/clientset/versioned/typed/operator/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// made is the name of the objects that the program itself creates and deletes.
const made = "made-by-typed-client"

// client is what the typed clients of all kinds have in common.
type client[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// change is one edit of an object: its name and what it does.
type change[T any] struct {
	name string
	edit func(T)
}

var ctx = context.Background()

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: openshift-client KUBECONFIG")
		os.Exit(2)
	}
	loaded, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	loaded.QPS, loaded.Burst = 100, 100
	configs, operators := config.NewForConfigOrDie(loaded), operator.NewForConfigOrDie(loaded)

	schedulers := configs.Schedulers()
	edits := []change[*configv1.Scheduler]{
		{"spec.profile", func(o *configv1.Scheduler) { o.Spec.Profile = configv1.NoScoring }},
		{"spec.mastersSchedulable", func(o *configv1.Scheduler) { o.Spec.MastersSchedulable = true }},
		{"spec back to zero", func(o *configv1.Scheduler) { o.Spec = configv1.SchedulerSpec{} }},
	}
	use("Scheduler", "cluster", schedulers, edits, nil)
	zero := &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: made}}
	create("Scheduler", schedulers, zero, edits, nil)

	kubeSchedulers := operators.KubeSchedulers()
	specs := []change[*operatorv1.KubeScheduler]{
		{"spec.logLevel", func(o *operatorv1.KubeScheduler) { o.Spec.LogLevel = operatorv1.Debug }},
		{"spec.forceRedeploymentReason", func(o *operatorv1.KubeScheduler) {
			o.Spec.ForceRedeploymentReason = "typed client"
		}},
		{"spec back to zero", func(o *operatorv1.KubeScheduler) { o.Spec = operatorv1.KubeSchedulerSpec{} }},
	}
	statuses := []change[*operatorv1.KubeScheduler]{
		{"status.conditions", func(o *operatorv1.KubeScheduler) {
			o.Status.Conditions = append(o.Status.Conditions, operatorv1.OperatorCondition{
				Type: "TypedClientDegraded", Status: operatorv1.ConditionFalse, LastTransitionTime: now(),
			})
		}},
		{"status.generations", func(o *operatorv1.KubeScheduler) {
			o.Status.Generations = append(o.Status.Generations, operatorv1.GenerationStatus{Resource: "x", Name: "x"})
		}},
		{"status.nodeStatuses", func(o *operatorv1.KubeScheduler) {
			o.Status.NodeStatuses = append(o.Status.NodeStatuses, operatorv1.NodeStatus{NodeName: "typed-client"})
		}},
	}
	use("KubeScheduler", "cluster", kubeSchedulers, specs, nil)
	empty := &operatorv1.KubeScheduler{ObjectMeta: metav1.ObjectMeta{Name: made}}
	create("KubeScheduler", kubeSchedulers, empty, specs, statuses, func() error {
		condition := applyoperator.OperatorCondition().WithType("AppliedDegraded").
			WithStatus(operatorv1.ConditionFalse).WithLastTransitionTime(now())
		status := applyoperator.KubeSchedulerStatus().WithConditions(condition)
		_, err := kubeSchedulers.ApplyStatus(ctx, applyoperator.KubeScheduler(made).WithStatus(status),
			metav1.ApplyOptions{FieldManager: "typed-client", Force: true})
		return err
	})

	clusterOperators := configs.ClusterOperators()
	health := []change[*configv1.ClusterOperator]{
		{"status.conditions", func(o *configv1.ClusterOperator) {
			o.Status.Conditions = append(o.Status.Conditions, configv1.ClusterOperatorStatusCondition{
				Type: "TypedClient", Status: configv1.ConditionTrue, LastTransitionTime: now(),
			})
		}},
		{"status.versions", func(o *configv1.ClusterOperator) {
			o.Status.Versions = append(o.Status.Versions, configv1.OperandVersion{Name: "typed-client"})
		}},
		{"status.relatedObjects", func(o *configv1.ClusterOperator) {
			o.Status.RelatedObjects = append(o.Status.RelatedObjects, configv1.ObjectReference{Resource: "nodes"})
		}},
	}
	use("ClusterOperator", "kube-scheduler", clusterOperators, nil, nil)
	none := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: made}}
	create("ClusterOperator", clusterOperators, none, []change[*configv1.ClusterOperator]{
		{"metadata.annotations", func(o *configv1.ClusterOperator) {
			o.Annotations = map[string]string{"typed-client": "yes"}
		}},
	}, health)
}

// use reads an object that exists, and writes it unchanged and with every edit.
func use[T any](kind, name string, objects client[T], specs, statuses []change[T]) {
	prefix := kind + " " + name + ": "
	update := objects.Update
	report(prefix+"get", func() error { _, err := objects.Get(ctx, name, metav1.GetOptions{}); return err })
	unchanged := change[T]{"unchanged", func(T) {}}
	for _, one := range append([]change[T]{unchanged}, specs...) {
		report(prefix+"update "+one.name, func() error { return write(objects, name, one, update) })
	}
	for _, one := range append([]change[T]{unchanged}, statuses...) {
		report(prefix+"update status "+one.name, func() error {
			return write(objects, name, one, objects.UpdateStatus)
		})
	}
}

// create makes an object with nothing but a name, uses it, and deletes it.
func create[T any](kind string, objects client[T], zero T, specs, statuses []change[T], more ...func() error) {
	_ = objects.Delete(ctx, made, metav1.DeleteOptions{}) // what an interrupted run left
	report(kind+" "+made+": create with zero values", func() error {
		_, err := objects.Create(ctx, zero, metav1.CreateOptions{})
		return err
	})
	use(kind, made, objects, specs, statuses)
	for _, one := range more {
		report(kind+" "+made+": apply status", one)
	}
	report(kind+" "+made+": delete", func() error { return objects.Delete(ctx, made, metav1.DeleteOptions{}) })
}

// write reads an object and writes it with a change.
func write[T any](
	objects client[T], name string, one change[T],
	update func(context.Context, T, metav1.UpdateOptions) (T, error),
) error {
	found, err := objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	one.edit(found)
	_, err = update(ctx, found, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

func report(step string, do func() error) {
	line := map[string]string{"step": step, "error": ""}
	if err := do(); err != nil {
		line["error"] = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

func now() metav1.Time { return metav1.NewTime(time.Now()) }
