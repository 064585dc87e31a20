package budget

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"
)

func TestDefaultSize(t *testing.T) {
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for name, test := range map[string]struct {
		cgroup, system memlimit.Provider
		want           int64
	}{
		"half of the cgroup's limit":       {memlimit.Limit(1 << 30), none, 512 << 20},
		"half of a quarter of the machine": {none, memlimit.Limit(8 << 30), 1 << 30},
		"at least 64 MiB":                  {memlimit.Limit(32 << 20), none, 64 << 20},
	} {
		if got, err := defaultSize(test.cgroup, test.system); err != nil || got != test.want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if _, err := defaultSize(none, none); !errors.Is(err, memlimit.ErrNoLimit) {
		t.Errorf("without anything known: %v", err)
	}
}

func TestForProcess(t *testing.T) {
	r := prometheus.NewRegistry()
	b, err := ForProcess(3, r, slog.New(slog.DiscardHandler))
	if err != nil || b.Size() != 3<<20 {
		t.Fatalf("%v, %v", b, err)
	}
	if err := b.Open().Take(5); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	if got["preheat_memory_budget_bytes"] != 3<<20 || got["preheat_memory_used_bytes"] != 5 {
		t.Errorf("metrics %v", got)
	}
	if _, err := ForProcess(-1, r, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a negative budget is taken")
	}
}
