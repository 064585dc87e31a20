// Package pooltest is the contract of pool.Pool as a test suite: one test for
// each promise. Every implementation runs it, on real sandboxes.
package pooltest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// Sizes are what a test needs of its pool.
type Sizes struct {
	// Warm is how many sandboxes are kept warm, Max how many there are at most.
	Warm, Max int
	// Sessions is how many sessions may be open.
	Sessions int
}

// Subject is an implementation under test. It has one pool, of sandboxes for
// Python, which is warm, and bash.
type Subject struct {
	Pool pool.Pool
	// Close ends the pool. The suite calls it once.
	Close func() error
	// Kill kills every process of a sandbox from outside, as a node does that
	// has no memory left.
	Kill func(tb testing.TB, sandbox string)
	// Exists reports whether anything of a sandbox is left.
	Exists func(tb testing.TB, sandbox string) bool
}

// Run runs the suite. start makes a pool and what belongs to it, for a test
// that may end it.
func Run(t *testing.T, start func(t *testing.T, s Sizes) Subject) {
	for _, group := range []struct {
		name  string
		sizes Sizes
		rows  []row
	}{
		{"two warm", Sizes{Warm: 2, Max: 4, Sessions: 3}, slices.Concat(roomy, roomySessions)},
		{"one at most", Sizes{Warm: 1, Max: 1, Sessions: 2}, slices.Concat(narrow, narrowSessions)},
	} {
		t.Run(group.name, func(t *testing.T) {
			s := suite{start(t, group.sizes), group.sizes}
			for _, r := range group.rows {
				t.Run(r.name, func(t *testing.T) {
					s.settled(t)
					r.test(t, s)
				})
			}
			s.settled(t)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	for _, r := range closing {
		t.Run(r.name, func(t *testing.T) {
			s := suite{start(t, Sizes{Warm: 1, Max: 1}), Sizes{Warm: 1, Max: 1}}
			s.settled(t)
			r.test(t, s)
		})
	}
}

type row struct {
	name string
	test func(*testing.T, suite)
}

var roomy = []row{
	{"a claimed sandbox is nobody else's", exclusive},
	{"a run yields what the program wrote and how it ended", runs},
	{"a program ends at its time limit", timesOut},
	{"a sandbox runs one program", oneRun},
	{"nothing of a run is in the next", nothingPasses},
	{"a released sandbox ends", releaseEnds},
	{"a sandbox ends at its claim's deadline", deadlineEnds},
	{"a cancelled run ends its program", cancelledRun},
	{"a run in a dead context runs nothing", deadContext},
	{"a lost sandbox is an error", lost},
	{"a dead warm sandbox is not handed out", deadWarm},
	{"unknown pools and languages are refused", unknown},
	{"a run that cannot be is refused with its field", invalidRun},
	{"a memory limit holds or is refused with its field", memoryLimit},
	{"the languages are those that run", languages},
	{"the status says what there is", status},
}

var narrow = []row{
	{"claims that wait are served in order of arrival", inOrder},
	{"a cancelled claim leaves the line", cancelledClaim},
	{"a claim in a dead context claims nothing", deadClaim},
	{"a claim waits until its context's deadline", claimDeadline},
}

var closing = []row{
	{"a closed pool refuses claims and ends those that wait", closeRefuses},
	{"a sandbox that is released after its pool was closed ends", releaseAfterClose},
}

// suite is a subject with what all tests do with it.
type suite struct {
	Subject
	sizes Sizes
}

const (
	// patience is how long a test waits for what has to happen.
	patience = time.Minute
	// lookEvery is the pause between looks at what announces no change.
	lookEvery = 10 * time.Millisecond
)

// status is the pool's status.
func (s suite) status(t *testing.T) execution.PoolStatus {
	t.Helper()
	all := s.Pool.Status()
	if len(all) != 1 {
		t.Fatalf("there are %d pools: %+v", len(all), all)
	}
	return all[0]
}

// until waits until the status is as it should be.
func (s suite) until(t *testing.T, what string, holds func(execution.PoolStatus) bool) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		changed := s.Pool.Changed()
		now := s.status(t)
		if holds(now) {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			t.Fatalf("waited in vain for: %s; the status is %+v", what, now)
		}
	}
}

// settled waits until the pool is full and nobody uses it.
func (s suite) settled(t *testing.T) {
	t.Helper()
	s.until(t, "the pool is full", func(p execution.PoolStatus) bool {
		return p.Warm == s.sizes.Warm && p.Warming == 0 && p.Claimed == 0 && p.Waiting == 0
	})
}

// gone waits until nothing is left of a sandbox.
func (s suite) gone(t *testing.T, sandbox string) {
	t.Helper()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for end := time.Now().Add(patience); s.Exists(t, sandbox); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("sandbox %s does not end", sandbox)
		}
	}
}

// want is a claim for a Python sandbox that lives long enough for every test.
func want() pool.Claim {
	return pool.Claim{Language: "python", ID: "pooltest", Deadline: time.Now().Add(2 * patience)}
}

// claim claims a sandbox. The test's end releases it, unless it has done so.
func (s suite) claim(t *testing.T) *held {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sandbox, err := s.Pool.Claim(ctx, want())
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	return hold(t, sandbox)
}

// held is a claimed sandbox that is released once.
type held struct {
	pool.Sandbox
	released bool
}

func hold(t *testing.T, s pool.Sandbox) *held {
	h := &held{Sandbox: s}
	t.Cleanup(h.Release)
	return h
}

// Release implements pool.Sandbox.
func (h *held) Release() {
	if !h.released {
		h.released = true
		h.Sandbox.Release()
	}
}

// program is a run of Python code.
func program(code string) pool.Run {
	return pool.Run{Language: "python", Code: []byte(code), Limits: pool.Limits{
		Timeout: 2 * patience, Output: 1 << 20, TotalOutput: 1 << 20,
		Artifacts: 4, ArtifactBytes: 1 << 20, Results: 4, ResultBytes: 1 << 20,
	}}
}

// run runs Python code to its end and returns what it wrote.
func (h *held) run(t *testing.T, code string) string {
	t.Helper()
	sink := newRecord()
	outcome, err := h.Run(t.Context(), program(code), sink)
	if err != nil || outcome.Status != execution.StatusSucceeded {
		t.Fatalf("run: %+v, %v; it wrote %q and %q", outcome, err, sink.out, sink.err)
	}
	return string(sink.out)
}

// start runs Python code, and returns when it has written something. The
// channel yields how the run ended.
func (h *held) start(ctx context.Context, t *testing.T, code string) (*record, <-chan ended) {
	t.Helper()
	sink, end := newRecord(), make(chan ended, 1)
	go func() { // received by the test, or over when its sandbox is released
		outcome, err := h.Run(ctx, program(code), sink)
		end <- ended{outcome, err}
	}()
	select {
	case <-sink.wrote:
	case e := <-end:
		t.Fatalf("the program ended at once: %+v", e)
	case <-time.After(patience):
		t.Fatal("the program does not start")
	}
	return sink, end
}

// ended is how a run ended.
type ended struct {
	outcome pool.Outcome
	err     error
}

// receive waits for the end of a run or a claim.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s does not end", what)
		panic("unreachable")
	}
}

func check(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("the error is %v, not: %v", err, target)
	}
}
