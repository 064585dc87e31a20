package sizing

import (
	"math"
	"time"

	"github.com/preheat-dev/preheat/internal/plan"
)

// rateHalfLife is that of the rates which Poisson and Dispersion go by.
const rateHalfLife = 30 * time.Second

// Poisson is the rule that pools follow now: plan.Staffing of λL, where λ is the recent
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
	return int(math.Ceil(plan.Staffing(p.rate.perSecond(now)*p.refill.slow().Seconds(), p.z)))
}
