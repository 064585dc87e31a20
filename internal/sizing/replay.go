package sizing

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Setup is the world that a pool is replayed in.
type Setup struct {
	// Arrivals are the claims' times, in order.
	Arrivals []time.Duration
	// From is when counting begins. What arrives earlier is there to learn from.
	From   time.Duration
	Refill Refill
	// Service is how long a claimed sandbox is in use, its removal included.
	Service time.Duration
	// Limit bounds the sandboxes that exist at once.
	Limit int
	Seed  uint64
}

// Outcome is what callers felt and what it cost, since Setup.From.
type Outcome struct {
	Claims int
	// Warm is the share of the claims that found a warm sandbox.
	Warm float64
	// P50 and P99 are quantiles of the wait of all claims.
	P50, P99 time.Duration
	// Idle is how long sandboxes stood warm and unclaimed for each claim.
	Idle time.Duration
	// Made and Thrown count the sandboxes made, and those that nobody had.
	Made, Thrown int
}

// tick is how often a policy is asked when nothing happens: sizes fall in time.
const tick = 100 * time.Millisecond

// Replay runs the pool of a policy through the arrivals.
func Replay(s Setup, p Policy) Outcome {
	r := replay{Setup: s, policy: p, random: rand.New(rand.NewPCG(s.Seed, 0))}
	r.at(0)
	for _, t := range s.Arrivals {
		r.advance(t)
		r.arrive()
	}
	for len(r.waiting) > 0 && len(r.events) > 0 {
		r.advance(r.events[0].at)
	}
	return r.outcome()
}

type event struct {
	at time.Duration
	// made says that a sandbox became warm, else one that was used is gone.
	made bool
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// replay is a pool in the middle of its arrivals.
type replay struct {
	Setup
	policy Policy
	random *rand.Rand

	now     time.Duration
	warm    int
	warming int
	// used counts the sandboxes that are claimed or being removed.
	used    int
	waiting []time.Duration
	events  events

	waits        []time.Duration
	hits         int
	idle         time.Duration
	made, thrown int
}

// advance lets everything happen that happens before or at t.
func (r *replay) advance(t time.Duration) {
	for {
		next := (r.now/tick + 1) * tick
		if len(r.events) > 0 {
			next = min(next, r.events[0].at)
		}
		if next > t {
			break
		}
		r.pass(next)
		for len(r.events) > 0 && r.events[0].at == next {
			r.happen(heap.Pop(&r.events).(event))
		}
		r.at(next)
	}
	r.pass(t)
}

// pass lets time go by.
func (r *replay) pass(t time.Duration) {
	if counted := t - max(r.now, r.From); counted > 0 {
		r.idle += time.Duration(r.warm) * counted
	}
	r.now = t
}

func (r *replay) happen(e event) {
	if !e.made {
		r.used--
		return
	}
	r.warming--
	if len(r.waiting) > 0 {
		since := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.serve(since)
		return
	}
	r.warm++
}

func (r *replay) arrive() {
	r.policy.Arrived(r.now)
	if r.warm > 0 {
		r.warm--
		if r.now >= r.From {
			r.hits++
		}
		r.serve(r.now)
	} else {
		r.waiting = append(r.waiting, r.now)
	}
	r.at(r.now)
}

// serve claims a sandbox for who has waited since then.
func (r *replay) serve(since time.Duration) {
	if since >= r.From {
		r.waits = append(r.waits, r.now-since)
	}
	r.used++
	heap.Push(&r.events, event{at: r.now + r.Service})
}

// at does what the plan of a pool does: it fills up what is missing, and
// retires what is too much.
func (r *replay) at(now time.Duration) {
	want := min(r.policy.Size(now), r.Limit) + len(r.waiting)
	if surplus := min(r.warm+r.warming-want, r.warm); surplus > 0 {
		r.warm -= surplus
		if now >= r.From {
			r.thrown += surplus
		}
	}
	missing := min(want-r.warm-r.warming, r.Refill.Parallel-r.warming, r.Limit-r.warm-r.warming-r.used)
	for range missing {
		r.warming++
		if now >= r.From {
			r.made++
		}
		heap.Push(&r.events, event{at: now + r.Refill.draw(r.random), made: true})
	}
}

func (r *replay) outcome() Outcome {
	o := Outcome{Claims: len(r.waits), Made: r.made, Thrown: r.thrown}
	if o.Claims == 0 {
		return o
	}
	slices.Sort(r.waits)
	o.Warm = float64(r.hits) / float64(o.Claims)
	o.P50, o.P99 = quantile(r.waits, .5), quantile(r.waits, .99)
	o.Idle = r.idle / time.Duration(o.Claims)
	return o
}

// quantile returns the q-quantile of a sorted list that is not empty.
func quantile[T cmp.Ordered](sorted []T, q float64) T {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// z99 is the 99th percentile of the normal distribution.
const z99 = 2.326

func (r Refill) sigma() float64 {
	if r.P99 <= r.P50 {
		return 0
	}
	return math.Log(float64(r.P99)/float64(r.P50)) / z99
}

// draw is the time that one sandbox takes to become warm.
func (r Refill) draw(random *rand.Rand) time.Duration {
	return scale(r.P50, math.Exp(r.sigma()*random.NormFloat64()))
}

func scale(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
