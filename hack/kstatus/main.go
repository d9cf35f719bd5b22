// Computes the status of objects as Flux and Helm do: with kstatus' own library.
//
// Reads a JSON array of objects from standard input and writes a JSON array with one result each.
package main

import (
	"encoding/json"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type result struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	var objects []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		log.Fatal(err)
	}
	results := make([]result, 0, len(objects))
	for _, object := range objects {
		var decoded unstructured.Unstructured
		if err := decoded.UnmarshalJSON(object); err != nil {
			log.Fatal(err)
		}
		computed, err := status.Compute(&decoded)
		if err != nil {
			log.Fatal(err)
		}
		results = append(results, result{computed.Status.String(), computed.Message})
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}
