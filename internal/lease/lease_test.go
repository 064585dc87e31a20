package lease

import (
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

func TestLease(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	l := Lease{Expires: at(100), Idle: 10 * time.Second, LastUse: start}
	check := func(name string, end time.Time, why execution.SessionEnd, now time.Time, left time.Duration) {
		t.Helper()
		if gotEnd, gotWhy := l.Next(); !gotEnd.Equal(end) || gotWhy != why {
			t.Errorf("%s: it ends at %s: %s", name, gotEnd, gotWhy)
		}
		if got := l.Left(now); got != left {
			t.Errorf("%s: %s is left", name, got)
		}
	}
	check("unused", at(10), execution.SessionIdle, at(4), 6*time.Second)
	l.Begin()
	l.Begin()
	l.End(at(20))
	check("in use", at(100), execution.SessionExpired, at(50), 10*time.Second)
	l.End(at(30))
	check("used", at(40), execution.SessionIdle, at(35), 5*time.Second)
	check("long ago", at(40), execution.SessionIdle, at(80), 0)
	l.Begin()
	l.End(at(95))
	check("near its end", at(100), execution.SessionExpired, at(95), 10*time.Second)
}
