package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// work is one thing whose time is taken.
type work func(ctx context.Context) error

// times does work n times from each of several clients at once, with pause
// before each, and returns how long each took.
func times(ctx context.Context, clients, n int, pause time.Duration, do work) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range n {
				time.Sleep(pause)
				began := time.Now()
				err := do(ctx)
				took := time.Since(began)
				mu.Lock()
				all = append(all, took)
				if err != nil && failed == nil {
					failed = err
				}
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	return all, failed
}

// rate does work from several clients for some time, and adds what it did.
type rate struct {
	took []time.Duration
	over time.Duration
}

func (r *rate) add(ctx context.Context, clients int, d time.Duration, do work) error {
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	began := time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(began) < d {
				start := time.Now()
				err := do(ctx)
				took := time.Since(start)
				mu.Lock()
				r.took = append(r.took, took)
				if err != nil && failed == nil {
					failed = err
				}
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	r.over += time.Since(began)
	return failed
}

func (r *rate) perSecond() float64 { return float64(len(r.took)) / r.over.Seconds() }

func newRow(name string, took []time.Duration) row {
	slices.Sort(took)
	at := func(q float64) float64 {
		i := min(len(took)-1, int(q*float64(len(took))))
		return float64(took[i].Microseconds()) / 1000
	}
	return row{Name: name, Unit: "ms", N: len(took), P50: at(.50), P90: at(.90), P99: at(.99), RatioTo: map[string]float64{}}
}

const (
	nameHTTP    = "print(1) over HTTP, alone"
	nameHTTP8   = "print(1) over HTTP, 8 clients"
	namePython  = "python3 -c 'print(1)', the image's, no sandbox"
	nameRuncRun = "runc run of the same"
	nameBeside  = "print(1) over HTTP, beside hostile programs"
	nameRate    = "executions, sustained"
	nameBare    = "bare runc create + start + delete, sustained"
)

// slices of the sustained measurements, so that both see the same machine.
const parts = 4

func measure(ctx context.Context, p *product, b *bare, n int, sustained time.Duration) ([]row, error) {
	// A user presses Run now and then: the pool has time to refill.
	alone, err := times(ctx, 1, n, 80*time.Millisecond, p.execute)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameHTTP, err)
	}
	python, err := times(ctx, 1, n/5, 0, b.python)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", namePython, err)
	}
	runcRun, err := times(ctx, 1, n/5, 0, b.run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameRuncRun, err)
	}
	eight, err := times(ctx, 8, n/8, 0, p.execute)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameHTTP8, err)
	}
	stop := p.attack(ctx)
	beside, err := times(ctx, 1, n/2, 80*time.Millisecond, p.execute)
	if err := errors.Join(err, stop()); err != nil {
		return nil, fmt.Errorf("%s: %w", nameBeside, err)
	}
	var ours, theirs rate
	for range parts {
		if err := ours.add(ctx, 8, sustained/parts, p.execute); err != nil {
			return nil, fmt.Errorf("%s: %w", nameRate, err)
		}
		if err := theirs.add(ctx, 2, sustained/parts, b.cycle); err != nil {
			return nil, fmt.Errorf("%s: %w", nameBare, err)
		}
	}
	plain, first, bareRate := newRow(namePython, python), newRow(nameHTTP, alone), newRow(nameBare, theirs.took)
	first.ratio(plain)
	run := newRow(nameRuncRun, runcRun)
	run.ratio(plain)
	hostile := newRow(nameBeside, beside)
	hostile.ratio(first)
	sustainedRow := newRow(nameRate, ours.took)
	sustainedRow.RatePerSecond, bareRate.RatePerSecond = ours.perSecond(), theirs.perSecond()
	sustainedRow.RatioTo[nameBare] = ours.perSecond() / theirs.perSecond()
	return []row{first, newRow(nameHTTP8, eight), hostile, plain, run, sustainedRow, bareRate}, nil
}

// ratio notes r's median beside that of another row.
func (r *row) ratio(to row) { r.RatioTo[to.Name] = r.P50 / to.P50 }
