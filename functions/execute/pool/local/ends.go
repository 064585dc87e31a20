package local

import (
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/lease"
)

const (
	// remember is how long it is known why a session ended, rememberMost of how
	// many sessions.
	remember     = time.Hour
	rememberMost = 4096
)

// ends are sessions that have ended, and why. The zero value has none.
type ends struct {
	reasons map[string]execution.SessionEnd
	order   []end // the oldest first
}

type end struct {
	id string
	at time.Time
}

func (e *ends) add(id string, reason execution.SessionEnd, now time.Time) {
	if e.reasons == nil {
		e.reasons = map[string]execution.SessionEnd{}
	}
	e.reasons[id] = reason
	e.order = append(e.order, end{id, now})
	e.forget(now)
}

func (e *ends) find(id string, now time.Time) (execution.SessionEnd, bool) {
	e.forget(now)
	reason, ok := e.reasons[id]
	return reason, ok
}

// forget drops what is too old or too much.
func (e *ends) forget(now time.Time) {
	for len(e.order) > 0 && (len(e.order) > rememberMost || now.Sub(e.order[0].at) >= remember) {
		delete(e.reasons, e.order[0].id)
		e.order = e.order[1:]
	}
}

// byItself is why a session has ended whose sandbox ended by itself: its runner
// ends it at the same times, by a clock of its own.
func byItself(l lease.Lease, now time.Time) execution.SessionEnd {
	if at, reason := l.Next(); !now.Add(time.Second).Before(at) {
		return reason
	}
	return execution.SessionSandboxLost
}
