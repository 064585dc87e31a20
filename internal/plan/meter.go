package plan

import (
	"math"
	"slices"
	"time"
)

const (
	// rateHalfLife is the time in which a past claim loses half its weight.
	rateHalfLife = 30 * time.Second
	// refillSamples is how many refills the quantile is taken of.
	refillSamples = 64
	refillP       = 0.95
)

// Meter measures what Autoscale needs. The zero value is ready for use by one
// goroutine at a time; times must not run backwards to be counted well.
type Meter struct {
	weight  float64
	at      time.Time
	refills []time.Duration
	next    int
}

// Claimed counts one claim.
func (m *Meter) Claimed(now time.Time) {
	m.weight = m.decayed(now) + 1
	m.at = now
}

// Refilled records how long one sandbox took to become warm.
func (m *Meter) Refilled(took time.Duration) {
	if len(m.refills) < refillSamples {
		m.refills = append(m.refills, took)
		return
	}
	m.refills[m.next] = took
	m.next = (m.next + 1) % refillSamples
}

// Rate is the recent claim rate per second.
func (m *Meter) Rate(now time.Time) float64 {
	return m.decayed(now) * math.Ln2 / rateHalfLife.Seconds()
}

// Refill is the 95th percentile of recent refills, 0 when there were none.
func (m *Meter) Refill() time.Duration {
	if len(m.refills) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(m.refills))
	return sorted[int(math.Ceil(refillP*float64(len(sorted))))-1]
}

func (m *Meter) decayed(now time.Time) float64 {
	age := max(0, now.Sub(m.at))
	return m.weight * math.Exp2(-age.Seconds()/rateHalfLife.Seconds())
}
