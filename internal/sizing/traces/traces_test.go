package traces_test

import (
	"math"
	"slices"
	"testing"

	"github.com/preheat-dev/preheat/internal/sizing/traces"
)

// The traces are those that their source describes.
func TestTraces(t *testing.T) {
	want := map[string]struct {
		arrivals int
		seconds  float64
	}{"code": {8819, 3436}, "conv": {19366, 3502}}
	for _, name := range traces.Names() {
		got, err := traces.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if n, last := len(got), math.Round(got[len(got)-1].Seconds()); n != want[name].arrivals || last != want[name].seconds {
			t.Errorf("%s has %d arrivals in %.0f s, want %+v", name, n, last, want[name])
		}
		if !slices.IsSorted(got) {
			t.Errorf("%s is not in order", name)
		}
	}
	if _, err := traces.Read("none"); err == nil {
		t.Error("a trace that does not exist was read")
	}
}
