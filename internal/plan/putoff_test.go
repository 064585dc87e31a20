package plan

import (
	"slices"
	"testing"
	"time"
)

// A steady trickle of claims puts off the end of used sandboxes for a while only
// (I4), and that of those whose end is recent for longer.
func TestUsedSandboxesEndUnderATrickleOfClaims(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := State{
		Size: Size{Replicas: 2}, Limit: 100, MaxCreating: 4, Lull: 500 * time.Millisecond,
		Sandboxes: []Sandbox{
			{Name: "warm1", Phase: Warm}, {Name: "warm2", Phase: Warm},
			{Name: "runs", Phase: Claimed, ClaimedAt: now.Add(-100 * time.Millisecond)},
			{Name: "old", Phase: Claimed, Over: true, OverSince: now.Add(-maxPutOff)},
			{Name: "recent", Phase: Claimed, Over: true, OverSince: now.Add(-maxPutOff + 300*time.Millisecond)},
		},
	}
	a := Plan(s, now)
	if !a.Quiet || !slices.Equal(a.Delete, []string{"old"}) {
		t.Errorf("quiet %v, deletes %v; want old alone", a.Quiet, a.Delete)
	}
	if want := now.Add(300 * time.Millisecond); !a.Wake.Equal(want) {
		t.Errorf("wakes at %v, want %v", a.Wake, want)
	}
	s.Sandboxes[2].ClaimedAt = now.Add(-time.Second)
	if a := Plan(s, now); a.Quiet || len(a.Delete) != 2 {
		t.Errorf("quiet %v, deletes %v; want both", a.Quiet, a.Delete)
	}
}
