// Command configurations is kube-scheduler's start, many times in one process: it reads the names of
// files, one in a line, and prints for each what `kube-scheduler --config FILE --write-config-to` does
// with it, as a line of JSON.
//
// A start of the real program costs 60 ms, most of it for what is the same each time.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// answer is the completed configuration of one file, or the reason why the scheduler does not start.
type answer struct {
	Completed string `json:"completed"`
	Error     string `json:"error"`
}

func main() {
	debug.SetGCPercent(400)
	klog.SetLogger(logr.Discard())
	lines, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if err := encoder.Encode(read(lines.Text())); err != nil {
			panic(err)
		}
		out.Flush()
	}
}

// read starts a scheduler as far as it goes without a cluster.
func read(file string) (found answer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = answer{Error: fmt.Sprintf("panic: %v", reason)}
		}
	}()
	opts := options.NewOptions()
	opts.ConfigFile = file
	opts.Master = "https://127.0.0.1:1" // nothing listens there; it only has to be set
	opts.SecureServing.BindPort = 0
	var completed string
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.New(sink{&completed})))
	defer cancel()
	cc, _, err := scheduler.Setup(ctx, opts)
	if err != nil {
		return answer{Error: err.Error()}
	}
	cc.EventBroadcaster.Shutdown()
	return answer{Completed: completed}
}

// sink is a log of verbosity 2, at which the scheduler logs its completed configuration.
type sink struct{ completed *string }

func (sink) Init(logr.RuntimeInfo)            {}
func (sink) Enabled(level int) bool           { return level <= 2 }
func (s sink) WithValues(...any) logr.LogSink { return s }
func (s sink) WithName(string) logr.LogSink   { return s }
func (sink) Error(error, string, ...any)      {}

func (s sink) Info(_ int, message string, values ...any) {
	if message == "Using component config" {
		*s.completed = values[1].(string)
	}
}
