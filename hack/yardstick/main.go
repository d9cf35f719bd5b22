// Command yardstick is a plain HTTP extender of kube-scheduler, as one would write it in Go on the
// standard library: it accepts all nodes and scores each by a hash. `hack/bench extender` measures
// the project's own extender beside it.
//
// It is given every advantage: it has no state, watches nothing, and knows of a Pod no more than an
// extender needs. GET /metrics has how long its answers took, as Prometheus reads it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"log"
	"net/http"
	"sync"
	"time"
)

// ExtenderArgs is what kube-scheduler sends to filter and prioritize; one of the last two is set.
type ExtenderArgs struct {
	Pod       *Pod
	Nodes     *NodeList
	NodeNames *[]string
}

// ExtenderFilterResult is what filter answers, in the form of the question.
type ExtenderFilterResult struct {
	Nodes       *NodeList
	NodeNames   *[]string
	FailedNodes map[string]string
	Error       string
}

// HostPriority is what prioritize answers for each node.
type HostPriority struct {
	Host  string
	Score int64
}

type Metadata struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	CreationTimestamp string            `json:"creationTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

type Pod struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		SchedulerName string `json:"schedulerName"`
		NodeName      string `json:"nodeName"`
		Containers    []struct {
			Name      string `json:"name"`
			Resources struct {
				Requests map[string]string `json:"requests"`
				Limits   map[string]string `json:"limits"`
			} `json:"resources"`
		} `json:"containers"`
	} `json:"spec"`
}

type NodeList struct {
	Metadata struct{} `json:"metadata"`
	Items    []Node   `json:"items"`
}

// Node has all fields that a Node has: kube-scheduler goes on with the nodes that it gets back.
type Node struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		PodCIDR       string   `json:"podCIDR,omitempty"`
		PodCIDRs      []string `json:"podCIDRs,omitempty"`
		ProviderID    string   `json:"providerID,omitempty"`
		Unschedulable bool     `json:"unschedulable,omitempty"`
		Taints        []Taint  `json:"taints,omitempty"`
	} `json:"spec"`
	Status struct {
		Capacity        map[string]string `json:"capacity,omitempty"`
		Allocatable     map[string]string `json:"allocatable,omitempty"`
		Phase           string            `json:"phase,omitempty"`
		Conditions      []Condition       `json:"conditions,omitempty"`
		Addresses       []Address         `json:"addresses,omitempty"`
		DaemonEndpoints struct {
			KubeletEndpoint struct{ Port int } `json:"kubeletEndpoint"`
		} `json:"daemonEndpoints"`
		NodeInfo        map[string]string `json:"nodeInfo"`
		Images          []Image           `json:"images,omitempty"`
		VolumesInUse    []string          `json:"volumesInUse,omitempty"`
		VolumesAttached []Volume          `json:"volumesAttached,omitempty"`
	} `json:"status"`
}

type Taint struct {
	Key       string `json:"key"`
	Value     string `json:"value,omitempty"`
	Effect    string `json:"effect"`
	TimeAdded string `json:"timeAdded,omitempty"`
}

type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	LastHeartbeatTime  string `json:"lastHeartbeatTime,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	Reason             string `json:"reason,omitempty"`
	Message            string `json:"message,omitempty"`
}

type Address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

type Image struct {
	Names     []string `json:"names"`
	SizeBytes int64    `json:"sizeBytes,omitempty"`
}

type Volume struct {
	Name       string `json:"name"`
	DevicePath string `json:"devicePath"`
}

// highestScore is MaxExtenderPriority of k8s.io/kube-scheduler/extender/v1.
const highestScore = 10

func names(args *ExtenderArgs) []string {
	if args.NodeNames != nil {
		return *args.NodeNames
	}
	if args.Nodes == nil {
		return nil
	}
	found := make([]string, len(args.Nodes.Items))
	for i := range args.Nodes.Items {
		found[i] = args.Nodes.Items[i].Metadata.Name
	}
	return found
}

func filter(args *ExtenderArgs) any {
	return &ExtenderFilterResult{Nodes: args.Nodes, NodeNames: args.NodeNames}
}

func prioritize(args *ExtenderArgs) any {
	nodes := names(args)
	scores := make([]HostPriority, len(nodes))
	for i, node := range nodes {
		hash := fnv.New32a()
		hash.Write([]byte(args.Pod.Metadata.UID))
		hash.Write([]byte(node))
		scores[i] = HostPriority{Host: node, Score: int64(hash.Sum32() % (highestScore + 1))}
	}
	return scores
}

// bounds are of the buckets, in seconds: close enough together for a percentile with an error of a tenth.
var bounds = makeBounds()

func makeBounds() []float64 {
	var made []float64
	for bound := 50e-6; bound < 30; bound *= 1.1 {
		made = append(made, bound)
	}
	return made
}

// histogram is how long the answers to one verb took.
type histogram struct {
	sync.Mutex
	counts []uint64
	count  uint64
	sum    float64
}

func (h *histogram) observe(seconds float64) {
	h.Lock()
	defer h.Unlock()
	for i := len(bounds) - 1; i >= 0 && seconds <= bounds[i]; i-- {
		h.counts[i]++
	}
	h.count++
	h.sum += seconds
}

func (h *histogram) write(answer http.ResponseWriter, verb string) {
	h.Lock()
	defer h.Unlock()
	const name = "yardstick_request_duration_seconds"
	for i, bound := range bounds {
		fmt.Fprintf(answer, "%s_bucket{verb=%q,le=\"%g\"} %d\n", name, verb, bound, h.counts[i])
	}
	fmt.Fprintf(answer, "%s_bucket{verb=%q,le=\"+Inf\"} %d\n", name, verb, h.count)
	fmt.Fprintf(answer, "%s_sum{verb=%q} %g\n%s_count{verb=%q} %d\n", name, verb, h.sum, name, verb, h.count)
}

func serve(took *histogram, work func(*ExtenderArgs) any) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		begun := time.Now()
		defer func() { took.observe(time.Since(begun).Seconds()) }()
		var args ExtenderArgs
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil || args.Pod == nil {
			http.Error(answer, fmt.Sprintf("no ExtenderArgs: %v", err), http.StatusBadRequest)
			return
		}
		// Not written as it is made: kube-scheduler reuses a connection only if it has read all of an
		// answer, and of one without a Content-Length it leaves the end.
		content, err := json.Marshal(work(&args))
		if err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		answer.Header().Set("Content-Type", "application/json")
		answer.Header().Set("Content-Length", fmt.Sprint(len(content)))
		answer.Write(content)
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:5400", "address and port")
	flag.Parse()
	verbs := map[string]func(*ExtenderArgs) any{"filter": filter, "prioritize": prioritize}
	histograms := map[string]*histogram{}
	mux := http.NewServeMux()
	for verb, work := range verbs {
		histograms[verb] = &histogram{counts: make([]uint64, len(bounds))}
		mux.HandleFunc("POST /"+verb, serve(histograms[verb], work))
	}
	mux.HandleFunc("GET /readyz", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprintln(answer, "ok") })
	mux.HandleFunc("GET /metrics", func(answer http.ResponseWriter, _ *http.Request) {
		for verb, took := range histograms {
			took.write(answer, verb)
		}
	})
	log.Fatal(http.ListenAndServe(*listen, mux))
}
