package sizing

import (
	"math/rand/v2"
	"testing"
	"time"
)

// exact is a refill that always takes as long.
func exact(d time.Duration, parallel int) Refill { return Refill{P50: d, P99: d, Parallel: parallel} }

// poissonArrivals are those of a constant rate.
func poissonArrivals(perSecond float64, n int) []time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	arrivals := make([]time.Duration, n)
	at := time.Minute
	for i := range arrivals {
		at += time.Duration(random.ExpFloat64() / perSecond * float64(time.Second))
		arrivals[i] = at
	}
	return arrivals
}

func TestReplayByHand(t *testing.T) {
	s := Setup{Arrivals: []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}, Refill: exact(2*time.Second, 1), Limit: 10}
	got := Replay(s, Static(2))
	// Warm at 2 s and 4 s; the third claim waits for one refill, and both others follow it
	// after the last wait has ended.
	want := Outcome{Claims: 3, Warm: 2. / 3, P50: 0, P99: 2 * time.Second, Idle: 14 * time.Second / 3, Made: 4}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReplayIsDeterministic(t *testing.T) {
	s := Setup{Arrivals: poissonArrivals(5, 2000), Refill: Refill{time.Second, 3 * time.Second, 16}, Limit: 100, Seed: 7}
	if a, b := Replay(s, NewBacklog(.95, 10*time.Second, s.Refill)), Replay(s, NewBacklog(.95, 10*time.Second, s.Refill)); a != b {
		t.Errorf("%+v and then %+v", a, b)
	}
}

// No policy makes a pool pass its limit or lose a claim.
func TestReplayKeepsLimit(t *testing.T) {
	s := Setup{Arrivals: poissonArrivals(50, 500), Refill: exact(time.Second, 100), Service: time.Second, Limit: 3}
	got := Replay(s, Static(1000))
	if got.Claims != 500 {
		t.Errorf("%d of 500 claims were served", got.Claims)
	}
	// Three at once, each there for a refill and a service: 1.5 a second at most.
	if lasts := (500 - 3) * 2 * time.Second / 3; got.P99 < lasts/2 {
		t.Errorf("a pool of three served 500 claims with a p99 wait of %s", got.P99)
	}
}

// What a claim needs is exactly the size of the smallest static pool that serves
// it warm, whatever the throughput.
func TestNeedsAreExact(t *testing.T) {
	arrivals := poissonArrivals(6, 600)
	for _, parallel := range []int{2, 4, 50} {
		refill := exact(300*time.Millisecond, parallel)
		n := needs{parallel: parallel}
		covered := map[int]int{}
		for _, at := range arrivals {
			need := n.arrived(at, refill.mean(), refill.slow())
			for size := need; size <= 12; size++ {
				covered[size]++
			}
		}
		for size := 1; size <= 12; size++ {
			got := Replay(Setup{Arrivals: arrivals, Refill: refill, Limit: 1 << 20}, Static(size))
			if warm := int(got.Warm*float64(got.Claims) + .5); warm != covered[size] {
				t.Errorf("%d at once, size %d: %d claims were warm, needs say %d", parallel, size, warm, covered[size])
			}
		}
	}
}

// Nobody who does not know the future has less idle time at no wait than who does.
func TestOracleBoundsTheOthers(t *testing.T) {
	refill := exact(time.Second, 50)
	s := Setup{Arrivals: poissonArrivals(5, 3000), Refill: refill, Limit: 1000}
	oracle := Replay(s, NewOracle(s.Arrivals, refill, 1.2))
	if oracle.P99 != 0 {
		t.Fatalf("the oracle lets claims wait: %+v", oracle)
	}
	for size := 1; size < 40; size++ {
		if got := Replay(s, Static(size)); got.P99 == 0 && got.Idle < oracle.Idle {
			t.Errorf("static %d is better than the oracle: %+v, %+v", size, got, oracle)
		}
	}
}

// A pool that nobody calls any more falls, as slowly as it is to.
func TestBacklogFallsSlowlyInSilence(t *testing.T) {
	b := NewBacklog(.99, 3*time.Second, exact(100*time.Millisecond, 2))
	now := time.Duration(0)
	for range 20 {
		now += time.Minute
		for range 30 {
			now += 10 * time.Millisecond
			b.Arrived(now)
			b.Size(now)
		}
	}
	before := b.Size(now)
	if before < 5 {
		t.Fatalf("the size is %d in a burst of 30", before)
	}
	last := before
	for range 600 {
		now += 100 * time.Millisecond
		size := b.Size(now)
		if size < last-max(1, last/10) {
			t.Fatalf("it fell from %d to %d at once", last, size)
		}
		last = size
	}
	if last >= before {
		t.Errorf("after a minute of silence it is %d, %d before", last, before)
	}
}
