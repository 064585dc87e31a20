package sizing

import (
	"math"
	"time"
)

// rateHalfLife is that of the rates which Poisson and Dispersion go by.
const rateHalfLife = 30 * time.Second

// Poisson is the square-root staffing rule: λL + z·√(λL), where λ is the recent
// rate and L the time of a refill. It holds if arrivals are independent and
// refills are not limited but by L.
type Poisson struct {
	z      float64
	refill Refill
	rate   rate
}

// NewPoisson returns a policy that adds z standard deviations.
func NewPoisson(z float64, r Refill) *Poisson {
	return &Poisson{z: z, refill: r, rate: rate{halfLife: rateHalfLife}}
}

// Arrived implements Policy.
func (p *Poisson) Arrived(now time.Duration) { p.rate.arrived(now) }

// Size implements Policy.
func (p *Poisson) Size(now time.Duration) int {
	load := p.rate.perSecond(now) * p.refill.slow().Seconds()
	return int(math.Ceil(load + p.z*math.Sqrt(load)))
}
