package template_test

import (
	"bytes"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/template"
)

// TestShippedTemplates: what is shipped sets nothing aside.
func TestShippedTemplates(t *testing.T) {
	for _, path := range []string{"base/pool.yaml", "examples/data.yaml"} {
		t.Run(path, func(t *testing.T) {
			manifest, err := os.ReadFile("../../config/" + path)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := bytes.Cut(manifest, []byte("\n---\n"))
			var shipped v1alpha1.SandboxTemplate
			if err := yaml.UnmarshalStrict(first, &shipped); err != nil {
				t.Fatal(err)
			}
			b, err := template.Build(&shipped, template.DefaultCeiling())
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Loosened) != 0 {
				t.Errorf("it sets aside %v", b.Loosened)
			}
		})
	}
}
