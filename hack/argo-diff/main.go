// Compares what Git has with what the cluster has as Argo CD does by default, for custom resources.
//
// The steps are those of ThreeWayDiff in Argo CD's gitops-engine (pkg/diff/diff.go), with the functions that
// it calls: without the schemes of built-in kinds, which custom resources do not have.
//
// Reads a JSON array of comparisons from standard input and writes a JSON array with one result each.
package main

import (
	"encoding/json"
	"log"
	"os"

	enginejson "github.com/argoproj/argo-cd/gitops-engine/pkg/utils/json"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

type object = map[string]any

type comparison struct {
	Git     object   `json:"git"`
	Cluster object   `json:"cluster"`
	Ignored []string `json:"ignored"` // ignoreDifferences: JSON pointers
}

type result struct {
	OutOfSync bool            `json:"outOfSync"`
	Patch     json.RawMessage `json:"patch"`
}

func main() {
	var comparisons []comparison
	if err := json.NewDecoder(os.Stdin).Decode(&comparisons); err != nil {
		log.Fatal(err)
	}
	results := make([]result, 0, len(comparisons))
	for _, one := range comparisons {
		results = append(results, compare(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}

func compare(one comparison) result {
	git, cluster := normalize(one.Git, one.Ignored), normalize(one.Cluster, one.Ignored)
	before := original(cluster)
	if before == nil {
		before = git
	} else {
		before = normalize(before, one.Ignored)
	}
	known := enginejson.RemoveMapFields(before, cluster)
	patch := must(jsonmergepatch.CreateThreeWayJSONMergePatch(encode(before), encode(git), encode(known)))
	live := encode(cluster)
	predicted := must(jsonpatch.MergePatch(live, patch))
	return result{!jsonpatch.Equal(live, predicted), patch}
}

// original returns the object that was applied last, which `kubectl apply` and Argo CD keep in an annotation.
func original(cluster object) object {
	metadata, _ := cluster["metadata"].(object)
	annotations, _ := metadata["annotations"].(object)
	text, ok := annotations[lastApplied].(string)
	if !ok {
		return nil
	}
	var applied object
	if err := json.Unmarshal([]byte(text), &applied); err != nil {
		log.Fatal(err)
	}
	if metadata, ok := applied["metadata"].(object); ok {
		if annotations, ok := metadata["annotations"].(object); ok && len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return applied
}

// normalize removes the status, which Argo CD ignores by default, and what a rule ignores.
func normalize(from object, ignored []string) object {
	document := encode(from)
	for _, pointer := range append([]string{"/status"}, ignored...) {
		operations := encode([]object{{"op": "remove", "path": pointer}})
		changed, err := must(jsonpatch.DecodePatch(operations)).Apply(document)
		if err == nil { // else the object has no such field
			document = changed
		}
	}
	var normalized object
	if err := json.Unmarshal(document, &normalized); err != nil {
		log.Fatal(err)
	}
	return normalized
}

func encode(value any) []byte { return must(json.Marshal(value)) }

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
