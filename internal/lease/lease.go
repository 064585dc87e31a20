// Package lease says how long a session lasts.
package lease

import (
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// Lease is a session's time.
type Lease struct {
	// Expires is its end at the latest, Idle how long it stays unused before.
	Expires time.Time
	Idle    time.Duration
	// LastUse is when it was used last, Uses how many uses go on now.
	LastUse time.Time
	Uses    int
}

// Next is when the session ends if nobody uses it, and why.
func (l Lease) Next() (time.Time, execution.SessionEnd) {
	if at := l.LastUse.Add(l.Idle); l.Uses == 0 && at.Before(l.Expires) {
		return at, execution.SessionIdle
	}
	return l.Expires, execution.SessionExpired
}

// Left is the time at now after which the session ends if nobody uses it.
func (l Lease) Left(now time.Time) time.Duration {
	if l.Uses > 0 {
		now = l.LastUse
	}
	return max(0, l.Idle-now.Sub(l.LastUse))
}

// Begin begins a use.
func (l *Lease) Begin() { l.Uses++ }

// End ends a use at now.
func (l *Lease) End(now time.Time) {
	l.Uses--
	l.LastUse = now
}
