package plan

import (
	"math"
	"time"
)

// Size says how many sandboxes should be warm.
type Size struct {
	// Replicas is the size when Autoscale is nil.
	Replicas  int
	Autoscale *Autoscale
	// Memory is what the last Actions returned.
	Memory Memory
}

// Autoscale sizes a pool by the square-root staffing rule: during one refill
// of length L, a pool that is claimed at rate λ loses λL sandboxes on average
// and, with Poisson arrivals, rarely more than Z standard deviations beyond.
type Autoscale struct {
	Min, Max int
	// Rate is the measured claim rate λ per second.
	Rate float64
	// Refill is the measured time L to make a sandbox warm (p95).
	Refill time.Duration
	// Z is the number of standard deviations; 2 when it is 0.
	Z float64
}

// Memory is what autoscaling remembers, so that it rises at once and falls
// slowly.
type Memory struct {
	// Desired is the size at Since.
	Desired int
	Since   time.Time
}

const (
	defaultZ = 2
	// fallEvery is how often an autoscaled size may fall by fallPart.
	fallEvery = 15 * time.Second
	fallPart  = 10
)

// Staffing is the square-root staffing rule: how many sandboxes a pool needs that
// loses load of them on average during one refill, with z standard deviations of
// Poisson arrivals beyond.
func Staffing(load, z float64) float64 { return load + z*math.Sqrt(load) }

// staffing returns ⌈λL + z√(λL)⌉ within [Min, Max].
func (a *Autoscale) staffing() int {
	z := a.Z
	if z == 0 {
		z = defaultZ
	}
	want := math.Ceil(Staffing(max(0, a.Rate*a.Refill.Seconds()), z))
	// The comparison in floating point also sorts out infinities and NaN.
	if !(want < float64(a.Max)) {
		return max(a.Max, 0)
	}
	return max(int(want), a.Min, 0)
}

// desired returns the size to aim at, what to remember, and when the size may
// fall next (zero if it need not).
func (s Size) desired(now time.Time) (int, Memory, time.Time) {
	a := s.Autoscale
	if a == nil {
		return max(s.Replicas, 0), Memory{}, time.Time{}
	}
	want := a.staffing()
	held := min(s.Memory.Desired, a.Max)
	if want >= held || s.Memory.Since.IsZero() {
		return want, Memory{Desired: want, Since: now}, time.Time{}
	}
	if next := s.Memory.Since.Add(fallEvery); now.Before(next) {
		return held, Memory{Desired: held, Since: s.Memory.Since}, next
	}
	held = max(want, held-max(1, held/fallPart))
	m := Memory{Desired: held, Since: now}
	if held > want {
		return held, m, now.Add(fallEvery)
	}
	return held, m, time.Time{}
}
