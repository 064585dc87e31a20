// Command bench measures the built product on this machine, side by side with
// what it is made of: a plain Python process and bare runc containers. It
// prints a table and writes a JSON list.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/preheat-dev/preheat/tests/bench/table"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	out := flag.String("out", "build/bench/local.json", "where to write the figures")
	runs := flag.Int("n", 500, "requests for each latency")
	idle := flag.Int("idle", 0, "measure so many idle sessions, and nothing else")
	sustained := flag.Duration("sustained", time.Minute, "time to measure each rate")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	dir, err := os.MkdirTemp("", "preheat-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o711); err != nil {
		return err
	}
	p, err := startProduct(ctx, filepath.Join(dir, "state"))
	if err != nil {
		return err
	}
	if *idle > 0 {
		i, err := measureIdle(ctx, p, *idle, *sustained)
		fmt.Printf("%d idle sessions: %.1f MB each, %.2f %% of a processor for all\n", i.sessions, float64(i.memory)/1e6, 100*i.cpu)
		return errors.Join(err, p.stop())
	}
	bare, err := newBare(dir)
	if err != nil {
		return errors.Join(err, p.stop())
	}
	rows, err := measure(ctx, p, bare, *runs, *sustained)
	if err := errors.Join(err, p.stop(), bare.close()); err != nil {
		return err
	}
	if err := table.Save(*out, rows); err != nil {
		return err
	}
	return table.Show(os.Stdout, rows)
}
