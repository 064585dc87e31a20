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
	n := flag.Int("n", 40, "requests for each latency")
	size := flag.Int("pool", 20, "size of the pool")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	rows, err := c.measure(ctx, *n, int32(*size))
	if err != nil {
		return err
	}
	return errors.Join(table.Show(os.Stdout, rows), table.Save(*out, rows))
}

// measure takes all figures on a pool of some size, and gives the pool the size
// that it had.
func (c *cluster) measure(ctx context.Context, n int, size int32) (_ []table.Row, err error) {
	was, err := c.resize(ctx, size)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, resizeErr := c.resize(context.WithoutCancel(ctx), was)
		err = errors.Join(err, resizeErr)
	}()
	var all []table.Row
	for _, take := range []func() ([]table.Row, error){
		func() ([]table.Row, error) {
			return c.latency(ctx, "print(1) inside the cluster, alone", c.inside, n, 1)
		},
		func() ([]table.Row, error) {
			return c.latency(ctx, "print(1) inside the cluster, 10 at once", c.inside, n, 10)
		},
		func() ([]table.Row, error) {
			return c.latency(ctx, "print(1) through the Knative route, alone", c.route, n, 1)
		},
		func() ([]table.Row, error) { return c.refill(ctx, size) },
		func() ([]table.Row, error) { return c.sustained(ctx, size) },
		func() ([]table.Row, error) { return c.writes(ctx, 20, size) },
		func() ([]table.Row, error) { return c.fromZero(ctx) },
	} {
		rows, err := take()
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "measured:", rows[0].Name)
		all = append(all, rows...)
	}
	return all, nil
}
