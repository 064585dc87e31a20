// Command cluster measures Preheat on the cluster of the current context, side
// by side with bare Pods. It prints a table and writes a JSON list. It has to
// run where the cluster's Services can be reached: `cluster exec` does that for
// the local one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	out := flag.String("out", "build/bench/cluster.json", "where to write the figures")
	n := flag.Int("n", 200, "requests for each latency")
	size := flag.Int("pool", 20, "size of the pool")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	figures, err := c.measure(ctx, *n, int32(*size))
	if err != nil {
		return err
	}
	if err := show(figures); err != nil {
		return err
	}
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(*out, append(data, '\n'), 0o644)
}

// measure takes all figures on a pool of some size, and gives the pool the size
// that it had.
func (c *cluster) measure(ctx context.Context, n int, size int32) (_ []figure, err error) {
	was, err := c.resize(ctx, size)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, resizeErr := c.resize(context.WithoutCancel(ctx), was)
		err = errors.Join(err, resizeErr)
	}()
	var figures []figure
	for _, take := range []func() (figure, error){
		func() (figure, error) {
			return c.latency(ctx, "print(1) inside the cluster, alone", c.inside, n, 1, size)
		},
		func() (figure, error) {
			return c.latency(ctx, "print(1) inside the cluster, 10 at once", c.inside, n, 10, size)
		},
		func() (figure, error) {
			return c.latency(ctx, "print(1) through the Knative route, alone", c.route, n, 1, size)
		},
		func() (figure, error) { return c.refill(ctx, size) },
		func() (figure, error) { return c.barePods(ctx, int(size)) },
		func() (figure, error) { return c.sustained(ctx, n) },
		func() (figure, error) { return c.writes(ctx, 20, size) },
	} {
		f, err := take()
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "measured:", f.Name)
		figures = append(figures, f)
	}
	return figures, nil
}

// figure is one line of the table.
type figure struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	N    int     `json:"n"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// spread is a figure of how long things took.
func spread(name string, took []time.Duration) figure {
	slices.Sort(took)
	at := func(p int) float64 {
		return float64(took[min(len(took)*p/100, len(took)-1)].Microseconds()) / 1000
	}
	return figure{Name: name, Unit: "ms", N: len(took), P50: at(50), P90: at(90), P99: at(99)}
}

// single is a figure of one value.
func single(name, unit string, n int, value float64) figure {
	return figure{Name: name, Unit: unit, N: n, P50: value, P90: value, P99: value}
}

func show(figures []figure) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "p50\tp90\tp99\tn\t\t")
	for _, f := range figures {
		fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t%d\t%s\t  %s\n", f.P50, f.P90, f.P99, f.N, f.Unit, f.Name)
	}
	return w.Flush()
}
