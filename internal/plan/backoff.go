package plan

import "time"

// Backoff is the memory of failed creations. The zero value means that there
// were none.
type Backoff struct {
	// Failures counts them since a sandbox last became warm.
	Failures int
	// Last is when the last of them happened.
	Last time.Time
	// Revision is what could not be made. Another revision starts afresh.
	Revision string
	// Problem is the last failure's.
	Problem Problem
}

const (
	backoffBase = time.Second
	backoffMax  = 30 * time.Second
	// youth is the age below which a sandbox that fails counts as one that
	// could not be made.
	youth = 2 * time.Minute
)

// Failed returns b with one more failure. Failures of one instant, as
// creations side by side meet them, count once.
func (b Backoff) Failed(revision string, p Problem, now time.Time) Backoff {
	if b.Revision != revision {
		b = Backoff{Revision: revision}
	}
	if b.Failures == 0 || !now.Before(b.until()) {
		b.Failures++
	}
	b.Last, b.Problem = now, p
	return b
}

// until is when the next creation may be tried.
func (b Backoff) until() time.Time {
	d := backoffMax
	// 2^5 base delays exceed the maximum.
	if n := b.Failures - 1; n < 5 {
		d = min(backoffBase<<max(n, 0), backoffMax)
	}
	return b.Last.Add(d)
}

// settled returns b as it is after a look at the sandboxes: forgotten once one
// made after the last failure has stayed warm for as long as the delay.
func (b Backoff) settled(s *State, now time.Time) Backoff {
	if b.Failures == 0 || b.Revision != s.Revision {
		return Backoff{}
	}
	delay := b.until().Sub(b.Last)
	for i := range s.Sandboxes {
		x := &s.Sandboxes[i]
		good := x.Phase == Warm && now.Sub(x.Created) >= delay || x.Phase == Claimed
		if good && x.Revision == s.Revision && x.Created.After(b.Last) {
			return Backoff{}
		}
	}
	return b
}
