package sizing

import "time"

// needs is the queue of refills that claims bring about, as it would be if none
// of them found the pool empty. Each claim begins one refill, so what a claim
// needs does not depend on the pool's size: with S sandboxes it is served warm
// exactly if fewer than S refills are outstanding when it comes.
type needs struct {
	// parallel is how many are made at once.
	parallel int
	// begun holds when the last refills were begun, as a ring, done when the
	// outstanding ones will be.
	begun []time.Duration
	next  int
	done  []time.Duration
}

// arrived counts a claim and returns how many sandboxes had to be there for it.
// Refills take mean on average and nearly always less than slow.
func (n *needs) arrived(now, mean, slow time.Duration) int {
	for len(n.done) > 0 && n.done[0] <= now {
		n.done = n.done[1:]
	}
	need := len(n.done) + 1
	begin := now
	if len(n.begun) < n.parallel {
		n.begun = append(n.begun, begin)
	} else {
		begin = max(begin, n.begun[n.next]+mean)
		n.begun[n.next] = begin
		n.next = (n.next + 1) % n.parallel
	}
	done := begin + slow
	if last := len(n.done) - 1; last >= 0 {
		done = max(done, n.done[last])
	}
	n.done = append(n.done, done)
	return need
}
