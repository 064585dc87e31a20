package record

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limits bound the records of one namespace.
type Limits struct {
	// Records is how many are kept.
	Records int
	// Bytes is how much the kept answers take together, compressed.
	Bytes int64
}

// record is the finished claim of an event.
type record struct {
	name string
	uid  types.UID
	// finished is when it ended.
	finished time.Time
	// begun says that its program may have run.
	begun bool
	// bytes is the size of its answer; 0 if it has none.
	bytes int64
}

// actions is what to do about the records of a namespace.
type actions struct {
	// drop lists the records whose answers go, remove those that go as a whole.
	drop, remove []record
}

// plan decides what goes, so that the rest is within the limits: of the records
// first those whose program never ran, which nobody misses, and then the oldest;
// of the answers the oldest. An answer that goes leaves its record, so that the
// program does not run again.
func plan(records []record, l Limits) actions {
	var a actions
	if n := len(records) - l.Records; n > 0 {
		sorted := slices.SortedFunc(slices.Values(records), func(x, y record) int {
			return cmp.Or(compareBool(x.begun, y.begun), byAge(x, y))
		})
		a.remove, records = sorted[:n], sorted[n:]
	}
	var sum int64
	for _, r := range records {
		sum += r.bytes
	}
	if sum <= l.Bytes {
		return a
	}
	for _, r := range slices.SortedFunc(slices.Values(records), byAge) {
		if sum <= l.Bytes {
			break
		}
		if r.bytes > 0 {
			a.drop = append(a.drop, r)
			sum -= r.bytes
		}
	}
	return a
}

// byAge sorts the oldest first. Times have the resolution of a second.
func byAge(x, y record) int {
	return cmp.Or(x.finished.Compare(y.finished), cmp.Compare(x.name, y.name))
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}
