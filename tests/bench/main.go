// Command bench measures the built product on this machine, side by side with
// what it is made of: a plain Python process and bare runc containers. It
// prints a table and writes a JSON list.
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
	out := flag.String("out", "build/bench/local.json", "where to write the figures")
	runs := flag.Int("n", 500, "requests for each latency")
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
	bare, err := newBare(dir)
	if err != nil {
		return errors.Join(err, p.stop())
	}
	rows, err := measure(ctx, p, bare, *runs, *sustained)
	if err := errors.Join(err, p.stop(), bare.close()); err != nil {
		return err
	}
	if err := save(*out, rows); err != nil {
		return err
	}
	return show(rows)
}

// row is one line of the result. Latencies are in Unit.
type row struct {
	Name          string             `json:"name"`
	Unit          string             `json:"unit"`
	N             int                `json:"n"`
	P50           float64            `json:"p50"`
	P90           float64            `json:"p90"`
	P99           float64            `json:"p99"`
	RatePerSecond float64            `json:"rate_per_second"`
	RatioTo       map[string]float64 `json:"ratio_to"`
}

func save(path string, rows []row) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func show(rows []row) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tn\tp50 ms\tp90 ms\tp99 ms\tper second\tratio to\t")
	for _, r := range rows {
		ratio := ""
		for name, value := range r.RatioTo {
			ratio = fmt.Sprintf("%.2f × %s", value, name)
		}
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", r.Name, r.N, r.P50, r.P90, r.P99, r.RatePerSecond, ratio)
	}
	return w.Flush()
}
