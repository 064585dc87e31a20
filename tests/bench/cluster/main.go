// Command cluster measures Preheat on the cluster of the current context, side
// by side with bare Pods. It prints a table and writes a JSON list. It has to
// run where the cluster's Services can be reached: `cluster exec` does that for
// the local one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/preheat-dev/preheat/tests/bench/table"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	out := flag.String("out", "build/bench/cluster.json", "where to write the figures")
	n := flag.Int("n", 20, "requests for each latency")
	size := flag.Int("pool", 20, "size of the pool")
	only := flag.String("only", "", "measure only what has this in its name: "+strings.Join(names, ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	rows, err := c.measure(ctx, *n, int32(*size), *only)
	if err != nil {
		return err
	}
	return table.Save(*out, rows)
}

// names are what can be measured, in this order.
var names = []string{"alone", "at once", "route", "refill", "sustained", "writes", "zero"}

// measure takes the figures with only in their names on a pool of some size,
// shows each, and gives the pool the size that it had.
func (c *cluster) measure(ctx context.Context, n int, size int32, only string) (_ []table.Row, err error) {
	was, err := c.resize(ctx, size)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, resizeErr := c.resize(context.WithoutCancel(ctx), was)
		err = errors.Join(err, resizeErr)
	}()
	c.size = size
	if err := c.makeIdle(ctx, 10); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.idle.remove(ctx)) }()
	var all []table.Row
	for _, name := range names {
		if !strings.Contains(name, only) {
			continue
		}
		rows, err := c.take(ctx, name, n, size)
		if err == nil {
			err = table.Show(os.Stdout, rows)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// take takes one of the figures.
func (c *cluster) take(ctx context.Context, name string, n int, size int32) ([]table.Row, error) {
	switch name {
	case "alone":
		return c.latency(ctx, "print(1) inside the cluster, alone", c.inside, n, 1)
	case "at once":
		return c.latency(ctx, "print(1) inside the cluster, 10 at once", c.inside, n, 10)
	case "route":
		return c.latency(ctx, "print(1) through the Knative route, alone", c.route, n, 1)
	case "refill":
		return c.refill(ctx, size)
	case "sustained":
		return c.sustained(ctx, size)
	case "writes":
		return c.writes(ctx, 20, size)
	default:
		return c.fromZero(ctx)
	}
}
