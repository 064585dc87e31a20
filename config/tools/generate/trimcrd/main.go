// Command trimcrd reads a CustomResourceDefinition and writes it without the
// descriptions of embedded Kubernetes types: a Pod's are half a megabyte, too
// much for `kubectl apply`, and are found in the Kubernetes reference anyway.
package main

import (
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"
)

// foreign are the properties below which everything comes from Kubernetes or
// Knative.
var foreign = map[string]bool{"podTemplate": true, "conditions": true}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "trimcrd:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return err
	}
	trim(crd, false)
	if data, err = yaml.Marshal(crd); err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// trim walks a document. Below a foreign property it drops descriptions, which
// are text there: a property that is called description is a map.
func trim(node any, inside bool) {
	switch n := node.(type) {
	case []any:
		for _, x := range n {
			trim(x, inside)
		}
	case map[string]any:
		if _, text := n["description"].(string); text && inside {
			delete(n, "description")
		}
		for k, x := range n {
			trim(x, inside || foreign[k])
		}
	}
}
