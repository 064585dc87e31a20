package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/tests/bench/table"
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

func (r *rate) row(name string) table.Row { return table.Latencies(name, r.took).Per(r.over) }

const (
	nameHTTP    = "print(1) over HTTP, alone"
	nameHTTP8   = "print(1) over HTTP, 8 clients"
	namePython  = "python3 -c 'print(1)', the image's, no sandbox"
	nameRuncRun = "runc run of the same"
	nameOpen    = "opening a session, alone"
	nameIn      = "print(1) in an open session, alone"
	nameBeside  = "print(1) over HTTP, beside hostile programs"
	nameRate    = "executions, sustained"
	nameBare    = "bare runc create + start + delete, sustained"
)

// pause is between two measurements of something alone: a user presses Run now
// and then, so that the pool has time to refill, and processors to rest.
const pause = 80 * time.Millisecond

// parts are the slices in which things are measured in turns that stand beside
// each other, so that all of them see the same machine.
const parts = 4

func measure(ctx context.Context, p *product, b *bare, n int, sustained time.Duration) ([]table.Row, error) {
	var alone, python, runcRun, opening, in []time.Duration
	session, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	for range parts {
		for _, one := range []struct {
			name string
			n    int
			do   work
			all  *[]time.Duration
		}{{nameHTTP, n / parts, p.execute, &alone}, {namePython, n / parts / 5, b.python, &python}, {nameRuncRun, n / parts / 5, b.run, &runcRun},
			{nameIn, n / parts, func(ctx context.Context) error { return p.executeIn(ctx, session) }, &in}} {
			took, err := times(ctx, 1, max(one.n, 1), pause, one.do)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
			*one.all = append(*one.all, took...)
		}
		took, err := p.openings(ctx, max(n/parts/2, 1), pause)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nameOpen, err)
		}
		opening = append(opening, took...)
	}
	if err := p.end(ctx, session); err != nil {
		return nil, err
	}
	eight, err := times(ctx, 8, n/8, 0, p.execute)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameHTTP8, err)
	}
	stop := p.attack(ctx)
	beside, err := times(ctx, 1, n/2, pause, p.execute)
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
	plain, bareRate := table.Latencies(namePython, python), theirs.row(nameBare)
	first := table.Latencies(nameHTTP, alone)
	return []table.Row{
		first.Beside(plain), table.Latencies(nameHTTP8, eight), table.Latencies(nameBeside, beside).Beside(first),
		table.Latencies(nameOpen, opening).Beside(first), table.Latencies(nameIn, in).Beside(plain),
		plain, table.Latencies(nameRuncRun, runcRun).Beside(plain),
		ours.row(nameRate).RateBeside(bareRate), bareRate,
	}, nil
}
