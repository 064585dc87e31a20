package table

import (
	"strings"
	"testing"
	"time"
)

func TestLatencies(t *testing.T) {
	var took []time.Duration
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i)*time.Millisecond)
	}
	if r := Latencies("x", took); r.P50 != 50 || r.P90 != 90 || r.P99 != 99 || r.N != 100 {
		t.Errorf("of 1 to 100 ms: %+v", r)
	}
	if r := Latencies("x", took[6:7]); r.P50 != 7 || r.P99 != 7 {
		t.Errorf("of one: %+v", r)
	}
}

func TestShow(t *testing.T) {
	slow := Latencies("slow", []time.Duration{20 * time.Millisecond}).Per(2 * time.Second)
	fast := Latencies("fast", []time.Duration{5 * time.Millisecond}).Per(500 * time.Millisecond)
	var out strings.Builder
	if err := Show(&out, []Row{fast.Beside(slow), fast.RateBeside(slow), Single("writes", "writes", 3, 1.5)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.25 × slow", "4.00 × slow", "2.0", "1.5"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if len(fast.RatioTo) != 0 {
		t.Error("a ratio has changed the row that it was made from")
	}
}
