package sizing

import (
	"math"
	"time"
)

// rate is the recent number of arrivals a second: a past one loses half of its
// weight in each half-life.
type rate struct {
	halfLife time.Duration
	weight   float64
	at       time.Duration
}

func (r *rate) arrived(now time.Duration) {
	r.weight, r.at = r.decayed(now)+1, now
}

func (r *rate) decayed(now time.Duration) float64 {
	return r.weight * math.Exp2(-float64(now-r.at)/float64(r.halfLife))
}

func (r *rate) perSecond(now time.Duration) float64 {
	return r.decayed(now) * math.Ln2 / r.halfLife.Seconds()
}

// windows counts arrivals in windows of one length, side by side, and keeps the
// last of them.
type windows struct {
	length time.Duration
	keep   int
	counts []int
	open   int
	index  int64
}

func (w *windows) advance(now time.Duration) {
	index := int64(now / w.length)
	for ; w.index < index; w.index++ {
		if index-w.index > int64(w.keep) {
			w.counts, w.open = w.counts[:0], 0
			w.index = index - int64(w.keep)
		}
		w.counts = append(w.counts, w.open)
		w.open = 0
		if len(w.counts) > w.keep {
			w.counts = w.counts[1:]
		}
	}
}

func (w *windows) arrived(now time.Duration) {
	w.advance(now)
	w.open++
}

// dispersion is the counts' variance over their mean: 1 with Poisson arrivals.
func (w *windows) dispersion() float64 {
	if len(w.counts) < 2 {
		return 1
	}
	var sum, squares float64
	for _, c := range w.counts {
		sum += float64(c)
		squares += float64(c) * float64(c)
	}
	n := float64(len(w.counts))
	mean := sum / n
	if mean == 0 {
		return 1
	}
	return max(1, (squares/n-mean*mean)/mean)
}
