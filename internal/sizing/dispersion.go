package sizing

import (
	"math"
	"time"
)

// dispersionWindows is how many windows the index of dispersion is taken of.
const dispersionWindows = 600

// Dispersion is Poisson with the arrivals' own variance: λL + z·√(λL·IoD), where
// IoD is the index of dispersion of counts in windows of the length L. What must
// be made beyond the throughput of the refill lengthens L.
type Dispersion struct {
	z       float64
	refill  Refill
	rate    rate
	windows windows
}

// NewDispersion returns a policy that adds z standard deviations.
func NewDispersion(z float64, r Refill) *Dispersion {
	return &Dispersion{z: z, refill: r, rate: rate{halfLife: rateHalfLife},
		windows: windows{length: r.slow(), keep: dispersionWindows}}
}

// Arrived implements Policy.
func (d *Dispersion) Arrived(now time.Duration) {
	d.rate.arrived(now)
	d.windows.arrived(now)
}

// Size implements Policy.
func (d *Dispersion) Size(now time.Duration) int {
	d.windows.advance(now)
	lambda := d.rate.perSecond(now)
	load := lambda * d.refill.slow().Seconds()
	if busy := lambda / d.refill.perSecond(); busy > 0 {
		load /= 1 - min(busy, .9)
	}
	return int(math.Ceil(load + d.z*math.Sqrt(load*d.windows.dispersion())))
}
