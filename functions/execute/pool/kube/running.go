package kube

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// answerSlack is how long after an execution's deadline its answer may come.
const answerSlack = time.Minute

// running is the events whose programs run in this process, with their claims:
// the name of a claim alone may come to be that of a later delivery.
type running struct {
	mu     sync.Mutex
	claims map[string]runningClaim
}

type runningClaim struct {
	uid types.UID
	// until is when it is forgotten, if nobody ends it.
	until time.Time
}

// begin notes the claim of an event whose program may have begun.
func (r *running) begin(event string, uid types.UID, deadline time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.claims, func(_ string, c runningClaim) bool { return now.After(c.until) })
	if r.claims == nil {
		r.claims = map[string]runningClaim{}
	}
	r.claims[event] = runningClaim{uid: uid, until: deadline.Add(answerSlack)}
}

// end forgets an event, and returns the UID of its claim.
func (r *running) end(event string) (uid types.UID, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, known := r.claims[event]
	delete(r.claims, event)
	return c.uid, known
}
