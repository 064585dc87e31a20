package sizing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// historyHalfLife is that of what Backlog remembers.
	historyHalfLife = 15 * time.Minute
	// planEvery is how often Backlog weighs its history anew.
	planEvery = 5 * time.Second
	// fallEvery is how often the size may fall by a tenth.
	fallEvery = time.Second
	// activities is how many levels of recent activity are told apart.
	activities = 24
)

// Backlog keeps each sandbox only where it is of most use: it counts, for each
// level of recent activity, how long that level lasted and what the claims of
// that time needed. An idle sandbox-second is then spent where it serves the most
// claims, until a share of all claims is covered. It knows no distribution, and
// forecasts nothing but that a busy time looks like earlier busy times.
type Backlog struct {
	share  float64
	refill Refill
	needs  needs
	recent rate

	at     time.Duration
	seen   []sample
	levels [activities]level
	sizes  [activities]int
	// planned is when sizes are computed next.
	planned time.Duration
	held    int
	since   time.Duration
}

// sample says which level of activity there was until a time.
type sample struct {
	until    time.Duration
	activity int
}

// level is what is remembered of one level of activity.
type level struct {
	seconds float64
	// claims counts, by what they needed, the claims whose refill had to begin
	// at this level.
	claims []float64
}

// NewBacklog returns a policy that covers a share of the claims. Activity is the
// rate of claims with the half-life recent.
func NewBacklog(share float64, recent time.Duration, r Refill) *Backlog {
	return &Backlog{share: share, refill: r, needs: needs{parallel: max(r.Parallel, 1)}, recent: rate{halfLife: recent}}
}

// activity is the level at a time: three levels make two octaves of the rate.
func (b *Backlog) activity(now time.Duration) int {
	w := b.recent.decayed(now)
	return max(0, min(activities-1, 1+int(max(-1, math.Floor(1.5*math.Log2(64*w))))))
}

// Arrived implements Policy.
func (b *Backlog) Arrived(now time.Duration) {
	b.pass(now)
	slow := b.refill.slow()
	need := b.needs.arrived(now, b.refill.mean(), slow)
	l := &b.levels[b.activityAt(now-slow, now)]
	for len(l.claims) <= need {
		l.claims = append(l.claims, 0)
	}
	l.claims[need]++
	b.recent.arrived(now)
}

// activityAt is the level at a time that has been before now.
func (b *Backlog) activityAt(then, now time.Duration) int {
	for _, s := range b.seen {
		if s.until > then {
			return s.activity
		}
	}
	return b.activity(now)
}

// pass lets time go by.
func (b *Backlog) pass(now time.Duration) {
	took := now - b.at
	if took <= 0 {
		return
	}
	activity := b.activity(b.at + took/2)
	fade := math.Exp2(-float64(took) / float64(historyHalfLife))
	for i := range b.levels {
		l := &b.levels[i]
		l.seconds *= fade
		for need := range l.claims {
			l.claims[need] *= fade
		}
	}
	b.levels[activity].seconds += took.Seconds()
	b.at = now
	b.seen = append(b.seen, sample{now, activity})
	for b.seen[0].until <= now-b.refill.slow() && len(b.seen) > 1 {
		b.seen = b.seen[1:]
	}
}

// Size implements Policy.
func (b *Backlog) Size(now time.Duration) int {
	b.pass(now)
	if now >= b.planned {
		b.plan()
		b.planned = now + planEvery
	}
	size := b.sizes[b.activity(now)]
	switch {
	case size >= b.held:
		b.held, b.since = size, now
	case now-b.since > fallEvery:
		b.held, b.since = max(size, b.held-max(1, b.held/10)), now
	}
	return b.held
}

// step is some more sandboxes at one level of activity.
type step struct {
	activity, size int
	// claims are those that it covers, value how many for each second that one
	// of the sandboxes stands idle.
	claims, value float64
}

// plan buys the steps of the greatest value until the share is covered.
func (b *Backlog) plan() {
	var steps []step
	var total float64
	for i := range b.levels {
		steps = b.levels[i].steps(steps, i)
		for _, n := range b.levels[i].claims {
			total += n
		}
	}
	slices.SortStableFunc(steps, func(x, y step) int { return cmp.Compare(y.value, x.value) })
	b.sizes = [activities]int{}
	left := total * b.share
	for _, s := range steps {
		if left <= 0 {
			return
		}
		left -= s.claims
		b.sizes[s.activity] = max(b.sizes[s.activity], s.size)
	}
}

// steps appends the steps of a level, each of less value than the one before.
func (l *level) steps(to []step, activity int) []step {
	seconds := max(l.seconds, 1e-3)
	for below := 0; below < len(l.claims)-1; {
		best := step{activity: activity}
		var sum float64
		for size := below + 1; size < len(l.claims); size++ {
			sum += l.claims[size]
			if value := sum / float64(size-below) / seconds; value > best.value {
				best.size, best.claims, best.value = size, sum, value
			}
		}
		if best.value == 0 {
			return to
		}
		to = append(to, best)
		below = best.size
	}
	return to
}
