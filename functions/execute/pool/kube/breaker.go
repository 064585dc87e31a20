package kube

import (
	"fmt"
	"maps"
	"time"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

const (
	// breakAfter is how many runners in a row cannot be reached before no more
	// sandboxes of their pool are claimed: the fault is then hardly theirs.
	breakAfter = 3
	// avoidFor is how long sandboxes of other nodes are preferred to those of a
	// node where a runner could not be reached.
	avoidFor = 30 * time.Second
)

// breaker decides whether this process may claim sandboxes of a pool, by
// whether their runners could be reached. A sandbox that is claimed and cannot
// be reached is lost, so the breaker opens after breakAfter failures in a row
// and refuses claims until a runner has been reached. The zero value is closed.
type breaker struct {
	failures int
	// cause is the last failure.
	cause error
	// avoided is, by node, until when sandboxes of others are preferred.
	avoided map[string]time.Time
	trial   trial
}

// trial is the one claim that an open breaker admits where nothing can be
// tested without one.
type trial int

const (
	noTrial trial = iota
	trialOffered
	trialRunning
)

func (b *breaker) open() bool { return b.failures >= breakAfter }

// cautious reports whether a runner has to be reached before its sandbox is
// claimed: the last one could not be reached.
func (b *breaker) cautious() bool { return b.failures > 0 }

// failed notes that a runner on a node could not be reached. It reports whether
// that opened the breaker.
func (b *breaker) failed(node string, cause error, now time.Time) (opened bool) {
	b.failures++
	b.cause = cause
	maps.DeleteFunc(b.avoided, func(_ string, until time.Time) bool { return !now.Before(until) })
	if node != "" {
		if b.avoided == nil {
			b.avoided = map[string]time.Time{}
		}
		b.avoided[node] = now.Add(avoidFor)
	}
	return b.failures == breakAfter
}

// succeeded notes that a runner on a node was reached, and reports whether that
// closed the breaker.
func (b *breaker) succeeded(node string) (closed bool) {
	closed = b.open()
	delete(b.avoided, node)
	b.withdrawTrial()
	b.failures, b.cause = 0, nil
	return closed
}

// avoids reports whether sandboxes of other nodes are preferred to those of
// this one.
func (b *breaker) avoids(node string, now time.Time) bool { return now.Before(b.avoided[node]) }

// ready returns nil if a claim would be admitted.
func (b *breaker) ready() error {
	if !b.open() || b.trial == trialOffered {
		return nil
	}
	return fmt.Errorf("%w: the runners of its last %d sandboxes could not be reached: %w", pool.ErrClosed, b.failures, b.cause)
}

// admit decides about a claim. At the end of one that was admitted as the trial
// endTrial has to be called.
func (b *breaker) admit() (asTrial bool, err error) {
	if err := b.ready(); err != nil {
		return false, err
	}
	if !b.open() {
		return false, nil
	}
	b.trial = trialRunning
	return true, nil
}

func (b *breaker) endTrial() { b.trial = noTrial }

// offerTrial admits one claim to an open breaker, unless one is running.
func (b *breaker) offerTrial() {
	if b.open() && b.trial == noTrial {
		b.trial = trialOffered
	}
}

// withdrawTrial takes the offer back.
func (b *breaker) withdrawTrial() {
	if b.trial == trialOffered {
		b.trial = noTrial
	}
}
