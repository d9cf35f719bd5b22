// Decodes configurations of Volcano's scheduler as Volcano does, for a test of their check.
//
// Standard input is a JSON list of files; standard output has the error of each, empty without one.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"

	"gopkg.in/yaml.v2"
	"volcano.sh/volcano/pkg/scheduler/conf"
)

func main() {
	var files []string
	if err := json.NewDecoder(os.Stdin).Decode(&files); err != nil {
		log.Fatal(err)
	}
	failures := make([]string, len(files))
	for index, file := range files {
		// loadSchedulerConf trims the file before it is decoded.
		decoded := &conf.SchedulerConfiguration{}
		if err := yaml.Unmarshal([]byte(strings.TrimSpace(file)), decoded); err != nil {
			failures[index] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(failures); err != nil {
		log.Fatal(err)
	}
}
