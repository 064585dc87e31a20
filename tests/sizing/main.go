// Command sizing replays recorded arrivals against the policies of package
// sizing and prints what each would have been worth. Each policy's knob is chosen
// on the first half of a trace; the row is what it then did in the second.
package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/preheat-dev/preheat/internal/sizing"
	"github.com/preheat-dev/preheat/internal/sizing/traces"
)

// world is a way to run sandboxes. What its refills take is assumed.
type world struct {
	name   string
	refill sizing.Refill
}

var worlds = []world{
	{"one machine", sizing.Refill{P50: 50 * time.Millisecond, P99: 150 * time.Millisecond, Parallel: 2}},
	{"cluster", sizing.Refill{P50: 2 * time.Second, P99: 3500 * time.Millisecond, Parallel: 16}},
}

const (
	// service is how long a short program has its sandbox.
	service = 300 * time.Millisecond
	limit   = 2000
	// largest is the largest static pool that is tried.
	largest = 300
)

// candidate is a policy with one setting of its knob. It is made anew for each
// replay, since policies learn.
type candidate struct {
	knob string
	make func(sizing.Setup) sizing.Policy
}

type family struct {
	name string
	// foresight says that it is a bound, not a policy to have.
	foresight bool
	members   []candidate
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	for _, name := range traces.Names() {
		arrivals, err := traces.Read(name)
		if err != nil {
			return err
		}
		for _, w := range worlds {
			fmt.Fprintf(out, "\n%s, %s: refill %s (p99 %s), %d at once\n", name, w.name, w.refill.P50, w.refill.P99, w.refill.Parallel)
			if err := table(out, arrivals, w.refill); err != nil {
				return err
			}
		}
	}
	return nil
}

func table(out io.Writer, arrivals []time.Duration, refill sizing.Refill) error {
	half := arrivals[len(arrivals)-1] / 2
	tuning := sizing.Setup{Arrivals: until(arrivals, half), Refill: refill, Service: service, Limit: limit}
	judging := tuning
	judging.Arrivals, judging.From, judging.Seed = arrivals, half, 1

	var fixed []sizing.Outcome
	for size := 1; size <= largest; size++ {
		fixed = append(fixed, sizing.Replay(judging, sizing.Static(size)))
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tknob\twarm %\twait p50 ms\tp99 ms\tidle s\tmade\tthrown\tstatic at that p99\tidle saved %\t")
	for _, f := range families() {
		c := choose(f, tuning)
		o := sizing.Replay(judging, c.make(judging))
		size, saved := against(fixed, o)
		name := f.name
		if f.foresight {
			name += " (knows the future)"
		}
		fmt.Fprintf(t, "%s\t%s\t%.1f\t%d\t%d\t%.2f\t%d\t%d\t%s\t%s\t\n", name, c.knob, 100*o.Warm, o.P50.Milliseconds(), o.P99.Milliseconds(),
			o.Idle.Seconds(), o.Made, o.Thrown, size, saved)
	}
	return t.Flush()
}

// choose returns the member with the least idle time whose p99 wait is no longer
// than one refill, or that with the shortest wait if none is.
func choose(f family, s sizing.Setup) candidate {
	best := f.members[0]
	var outcome sizing.Outcome
	for i, c := range f.members {
		o := sizing.Replay(s, c.make(s))
		good, had := o.P99 <= s.Refill.P50, outcome.P99 <= s.Refill.P50
		better := good && (!had || o.Idle < outcome.Idle) || !good && !had && o.P99 < outcome.P99
		if i == 0 || better {
			best, outcome = c, o
		}
	}
	return best
}

// against compares an outcome with the smallest static pool whose p99 wait is no
// longer, which is chosen with hindsight.
func against(fixed []sizing.Outcome, o sizing.Outcome) (size, saved string) {
	for i, x := range fixed {
		if x.P99 <= o.P99 {
			return fmt.Sprint(i + 1), fmt.Sprintf("%.0f", 100*(1-o.Idle.Seconds()/x.Idle.Seconds()))
		}
	}
	return fmt.Sprintf("> %d", largest), "?"
}

// until returns the arrivals before an end.
func until(arrivals []time.Duration, end time.Duration) []time.Duration {
	for i, at := range arrivals {
		if at >= end {
			return arrivals[:i]
		}
	}
	return arrivals
}

func families() []family {
	var static, watermark []candidate
	for size := 1; size <= largest; size++ {
		static = append(static, candidate{fmt.Sprint(size), func(sizing.Setup) sizing.Policy { return sizing.Static(size) }})
	}
	for _, high := range []int{4, 8, 16, 32, 64, 128, 256} {
		watermark = append(watermark, candidate{fmt.Sprint("2-", high), func(s sizing.Setup) sizing.Policy {
			return sizing.NewWatermark(2, high, s.Refill)
		}})
	}
	deviations := []float64{1, 2, 3, 4, 6, 8, 12, 16}
	shares := []float64{.5, .7, .8, .85, .9, .93, .95, .97, .98, .99, .995, .999}
	knobs := func(values []float64, build func(float64, sizing.Setup) sizing.Policy) (list []candidate) {
		for _, v := range values {
			list = append(list, candidate{fmt.Sprint(v), func(s sizing.Setup) sizing.Policy { return build(v, s) }})
		}
		return list
	}
	var backlog []candidate
	for _, recent := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second, 300 * time.Second} {
		for _, share := range shares {
			backlog = append(backlog, candidate{fmt.Sprint(share, "/", recent), func(s sizing.Setup) sizing.Policy {
				return sizing.NewBacklog(share, recent, s.Refill)
			}})
		}
	}
	return []family{
		{"static", false, static},
		{"watermark", false, watermark},
		{"poisson", false, knobs(deviations, func(z float64, s sizing.Setup) sizing.Policy { return sizing.NewPoisson(z, s.Refill) })},
		{"dispersion", false, knobs(deviations, func(z float64, s sizing.Setup) sizing.Policy { return sizing.NewDispersion(z, s.Refill) })},
		{"window", false, knobs(shares, func(q float64, s sizing.Setup) sizing.Policy { return sizing.NewWindow(q, s.Refill) })},
		{"quantile", false, knobs(shares, func(q float64, s sizing.Setup) sizing.Policy { return sizing.NewQuantile(q, s.Refill) })},
		{"backlog", false, backlog},
		{"oracle", true, knobs([]float64{1, 1.5, 2, 3, 4}, func(x float64, s sizing.Setup) sizing.Policy {
			return sizing.NewOracle(s.Arrivals, s.Refill, x)
		})},
	}
}
