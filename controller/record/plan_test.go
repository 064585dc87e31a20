package record

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var t0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// at is a record of an event that has run, which ended some seconds after t0.
func at(seconds int, name string, bytes int64) record {
	return record{name: name, uid: types.UID(name), finished: t0.Add(time.Duration(seconds) * time.Second), begun: true, bytes: bytes}
}

func neverRan(r record) record {
	r.begun = false
	return r
}

func named(records []record) string {
	var list []string
	for _, r := range records {
		list = append(list, r.name)
	}
	return fmt.Sprint(list)
}

func TestPlan(t *testing.T) {
	tests := map[string]struct {
		records      []record
		limits       Limits
		drop, remove string
	}{
		"none":           {limits: Limits{1, 1}, drop: "[]", remove: "[]"},
		"within":         {[]record{at(2, "b", 5), at(1, "a", 5)}, Limits{2, 10}, "[]", "[]"},
		"too many bytes": {[]record{at(2, "b", 5), at(1, "a", 5), at(3, "c", 5)}, Limits{3, 10}, "[a]", "[]"},
		"no more than is needed": {
			[]record{at(1, "a", 1), at(2, "b", 9), at(3, "c", 5), at(4, "d", 5)}, Limits{9, 10}, "[a b]", "[]"},
		"an empty answer cannot be dropped": {
			[]record{at(1, "a", 0), at(2, "b", 6), at(3, "c", 6)}, Limits{9, 10}, "[b]", "[]"},
		"one answer is too large by itself": {[]record{at(1, "a", 11)}, Limits{9, 10}, "[a]", "[]"},
		"the name breaks ties within a second": {
			[]record{at(1, "b", 6), at(1, "a", 6)}, Limits{9, 10}, "[a]", "[]"},
		"too many records": {[]record{at(3, "c", 1), at(1, "a", 1), at(2, "b", 1)}, Limits{1, 10}, "[]", "[a b]"},
		"what never ran goes first": {
			[]record{at(1, "a", 1), neverRan(at(2, "b", 0)), neverRan(at(3, "c", 0))}, Limits{2, 10}, "[]", "[b]"},
		"a removed record's answer counts no more": {
			[]record{at(1, "a", 6), at(2, "b", 6), at(3, "c", 4)}, Limits{2, 10}, "[]", "[a]"},
		"both": {[]record{at(1, "a", 6), at(2, "b", 6), at(3, "c", 6)}, Limits{2, 10}, "[b]", "[a]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.records)
			got := plan(test.records, test.limits)
			if named(got.drop) != test.drop || named(got.remove) != test.remove {
				t.Errorf("drop %s and remove %s, want %s and %s", named(got.drop), named(got.remove), test.drop, test.remove)
			}
			if !slices.Equal(test.records, before) {
				t.Error("the records were changed")
			}
		})
	}
}

// TestPlanOverHistories lets events end, answers be dropped and records go, in
// random order: whatever happens, what is left is within the limits, an answer
// goes before those that are younger, and no more goes than has to.
func TestPlanOverHistories(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := Limits{Records: 1 + random.IntN(20), Bytes: int64(random.IntN(200))}
		var kept []record
		now := 0
		for i := range 60 {
			for range random.IntN(4) {
				now += random.IntN(2)
				r := at(now, fmt.Sprintf("e%d-%d-%d", i, len(kept), random.IntN(1000)), int64(random.IntN(40)))
				if random.IntN(5) == 0 {
					r = neverRan(r)
					r.bytes = 0
				}
				kept = append(kept, r)
			}
			if random.IntN(3) == 0 && len(kept) > 0 { // its time is over
				kept = slices.Delete(kept, 0, 1)
			}
			random.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
			kept = checked(t, seed, kept, l)
		}
	}
}

// checked checks the plan for records, and returns what it leaves.
func checked(t *testing.T, seed uint64, records []record, l Limits) (left []record) {
	t.Helper()
	a := plan(records, l)
	has := func(list []record, r record) bool {
		return slices.ContainsFunc(list, func(x record) bool { return x.uid == r.uid })
	}
	var sum int64
	for _, r := range records {
		switch {
		case has(a.remove, r):
			continue
		case has(a.drop, r):
			r.bytes = 0
		}
		sum += r.bytes
		left = append(left, r)
	}
	if len(left) > l.Records || sum > l.Bytes {
		t.Fatalf("seed %d: %d records with %d bytes are left, the limits are %+v", seed, len(left), sum, l)
	}
	if len(a.remove) > 0 && len(left) != l.Records {
		t.Fatalf("seed %d: %d records are left where there is room for %d", seed, len(left), l.Records)
	}
	if n := len(a.drop); n > 0 && sum+a.drop[n-1].bytes <= l.Bytes {
		t.Fatalf("seed %d: the last dropped answer would have fitted", seed)
	}
	for _, r := range left {
		for _, gone := range a.drop {
			if r.bytes > 0 && byAge(r, gone) < 0 {
				t.Fatalf("seed %d: the answer of %s went before the older one of %s", seed, gone.name, r.name)
			}
		}
		for _, gone := range a.remove {
			if gone.begun && (!r.begun || byAge(r, gone) < 0) {
				t.Fatalf("seed %d: record %s went before %s", seed, gone.name, r.name)
			}
		}
	}
	if again := plan(left, l); len(again.drop)+len(again.remove) > 0 {
		t.Fatalf("seed %d: the plan for what is left is %+v", seed, again)
	}
	return left
}
