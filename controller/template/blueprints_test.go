package template_test

import (
	"testing"

	"github.com/preheat-dev/preheat/controller/template"
)

// TestBlueprintsAreBuiltOnce: a template is built anew when its specification
// has changed, and only then.
func TestBlueprintsAreBuiltOnce(t *testing.T) {
	blueprints := template.NewBlueprints(template.DefaultCeiling())
	tmpl := plain()
	tmpl.UID, tmpl.Generation = "u1", 1
	of := func() *template.Blueprint {
		t.Helper()
		b, err := blueprints.Of(tmpl)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := of()
	tmpl.ResourceVersion = "2" // as by a write of its status
	if of() != first {
		t.Error("it was built again without a change of its specification")
	}
	tmpl.Generation, tmpl.Spec.RunnerPort = 2, 7071
	second := of()
	if second == first || second.Revision == first.Revision {
		t.Error("a change of the specification was missed")
	}
	tmpl.UID, tmpl.Generation, tmpl.Spec.RunnerPort = "u2", 2, 7072
	if of().Revision == second.Revision {
		t.Error("another template of the same name was missed")
	}
	tmpl.Generation, tmpl.Spec.PodTemplate.Spec.Containers = 3, nil
	for range 2 {
		if _, err := blueprints.Of(tmpl); err == nil {
			t.Error("a template without containers was not refused")
		}
	}
}

func BenchmarkBlueprint(b *testing.B) {
	b.Run("built", func(b *testing.B) {
		for b.Loop() {
			if _, err := template.Build(plain(), template.DefaultCeiling()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("kept", func(b *testing.B) {
		blueprints, tmpl := template.NewBlueprints(template.DefaultCeiling()), plain()
		for b.Loop() {
			if _, err := blueprints.Of(tmpl); err != nil {
				b.Fatal(err)
			}
		}
	})
}
