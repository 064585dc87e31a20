package pooltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/pause"
)

// I1, I2: claims at once get different sandboxes, and no name comes again.
func exclusive(t *testing.T, s suite) {
	seen := map[string]bool{}
	for range 2 {
		claimed := make(chan pool.Sandbox, s.sizes.Max)
		var all sync.WaitGroup
		for range s.sizes.Max {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				sandbox, err := s.Pool.Claim(ctx, want())
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				claimed <- sandbox
			})
		}
		all.Wait()
		close(claimed)
		for sandbox := range claimed {
			h := hold(t, sandbox)
			if seen[h.Name()] {
				t.Errorf("sandbox %s was given twice", h.Name())
			}
			seen[h.Name()] = true
			if got := s.status(t).Name; h.Pool() != got {
				t.Errorf("sandbox %s is of pool %q, not %q", h.Name(), h.Pool(), got)
			}
			h.run(t, "print(1)")
			h.Release()
		}
	}
}

// I4: the caller's release ends a sandbox: one that was never used, one whose
// program has ended, and one whose program runs, which the run then reports.
func releaseEnds(t *testing.T, s suite) {
	unused := s.claim(t)
	unused.Release()
	s.gone(t, unused.Name())

	used := s.claim(t)
	used.run(t, "print(1)")
	used.Release()
	s.gone(t, used.Name())

	busy := s.claim(t)
	_, end := busy.start(t.Context(), t, endless)
	busy.Release()
	if e := receive(t, "the run", end); e.err == nil && e.outcome.ExitCode == 0 {
		t.Errorf("a run whose sandbox was released ended with %+v", e.outcome)
	}
	s.gone(t, busy.Name())
	s.until(t, "no released sandbox is listed", func(p execution.PoolStatus) bool {
		return !slices.ContainsFunc(p.Sandboxes, func(x execution.SandboxStatus) bool {
			return x.Name == unused.Name() || x.Name == used.Name() || x.Name == busy.Name()
		})
	})
}

// I4: a sandbox that nobody releases ends at its claim's deadline.
func deadlineEnds(t *testing.T, s suite) {
	claim := want()
	claim.Deadline = time.Now().Add(2 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sandbox, err := s.Pool.Claim(ctx, claim)
	if err != nil {
		t.Fatal(err)
	}
	h := hold(t, sandbox)
	_, end := h.start(t.Context(), t, endless)
	check(t, receive(t, "the run", end).err, pool.ErrSandboxLost)
	if early := time.Until(claim.Deadline); early > 0 {
		t.Errorf("the sandbox ended %s before its deadline", early)
	}
	s.gone(t, h.Name())
}

// I1: whoever claims a sandbox gets one that lives, though others have died. A
// pool that finds only dead ones may refuse claims, and goes on by itself.
func deadWarm(t *testing.T, s suite) {
	for _, x := range s.status(t).Sandboxes {
		s.Kill(t, x.Name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		sandbox, err := s.Pool.Claim(ctx, want())
		switch {
		case err == nil:
			hold(t, sandbox).run(t, "print(1)")
			return
		case !errors.Is(err, pool.ErrClosed) || !pause.For(ctx, lookEvery):
			t.Fatalf("claim: %v", err)
		}
	}
}

// I11: what no pool offers is refused at once, with its own error.
func unknown(t *testing.T, s suite) {
	name := s.status(t).Name
	for _, test := range []struct {
		claim pool.Claim
		err   error
	}{
		{pool.Claim{Language: "cobol"}, pool.ErrUnknownLanguage},
		{pool.Claim{Language: "cobol", Pool: name}, pool.ErrUnknownLanguage},
		{pool.Claim{Language: "python", Pool: "no-such-pool"}, pool.ErrUnknownPool},
	} {
		test.claim.Deadline = want().Deadline
		sandbox, err := s.Pool.Claim(t.Context(), test.claim)
		if err == nil {
			hold(t, sandbox)
		}
		check(t, err, test.err)
	}
}

// I8: those who wait are served in the order in which they came, and know that
// they have waited.
func inOrder(t *testing.T, s suite) {
	const waiting = 4
	first := s.claim(t)
	if first.Queued() {
		t.Error("a claim that found a warm sandbox says that it waited")
	}
	served := make(chan int, waiting)
	var all sync.WaitGroup
	for i := range waiting {
		all.Go(func() {
			sandbox, err := s.Pool.Claim(t.Context(), want())
			if err != nil {
				t.Errorf("claim %d: %v", i, err)
				return
			}
			served <- i
			if !sandbox.Queued() {
				t.Errorf("claim %d does not say that it waited", i)
			}
			sandbox.Release()
		})
		s.until(t, fmt.Sprint(i+1, " wait"), func(p execution.PoolStatus) bool { return p.Waiting == i+1 })
	}
	first.Release()
	all.Wait()
	for i := range waiting {
		if got := receive(t, "the line", served); got != i {
			t.Errorf("claim %d was served when it was the turn of %d", got, i)
		}
	}
}

// I8: a claim whose caller goes away ends with the reason, leaves the line, and
// takes nothing from whoever stands behind it.
func cancelledClaim(t *testing.T, s suite) {
	first := s.claim(t)
	leaves, behind := make(chan error, 1), make(chan error, 1)
	claim := func(ctx context.Context, end chan<- error) {
		sandbox, err := s.Pool.Claim(ctx, want())
		if err == nil {
			sandbox.Release()
		}
		end <- err
	}
	ctx, cancel := context.WithCancel(t.Context())
	go claim(ctx, leaves)
	s.until(t, "one waits", func(p execution.PoolStatus) bool { return p.Waiting == 1 })
	go claim(t.Context(), behind)
	s.until(t, "two wait", func(p execution.PoolStatus) bool { return p.Waiting == 2 })
	cancel()
	err := receive(t, "the cancelled claim", leaves)
	check(t, err, pool.ErrNoSandbox)
	check(t, err, context.Canceled)
	s.until(t, "one waits again", func(p execution.PoolStatus) bool { return p.Waiting == 1 })
	first.Release()
	if err := receive(t, "the claim behind", behind); err != nil {
		t.Errorf("the claim behind: %v", err)
	}
}

// I8: a claim of a caller who is gone already costs no sandbox, or gives back
// what it took to be destroyed.
func deadClaim(t *testing.T, s suite) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sandbox, err := s.Pool.Claim(ctx, want())
	if err == nil {
		sandbox.Release()
		return
	}
	check(t, err, pool.ErrNoSandbox)
}

// I8: a claim that waits ends at its context's deadline.
func claimDeadline(t *testing.T, s suite) {
	s.claim(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Pool.Claim(ctx, want())
	check(t, err, pool.ErrNoSandbox)
}

// I8: the end of a pool ends every wait for it.
func closeRefuses(t *testing.T, s suite) {
	s.claim(t)
	waits := make(chan error, 1)
	go func() {
		_, err := s.Pool.Claim(t.Context(), want())
		waits <- err
	}()
	s.until(t, "one waits", func(p execution.PoolStatus) bool { return p.Waiting == 1 })
	if err := s.Pool.Ready(); err != nil {
		t.Errorf("an open pool is not ready: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	check(t, receive(t, "the claim that waits", waits), pool.ErrClosed)
	_, err := s.Pool.Claim(t.Context(), want())
	check(t, err, pool.ErrClosed)
	check(t, s.Pool.Ready(), pool.ErrClosed)
}

// I4: a sandbox ends with its release, also when the pool has been closed.
func releaseAfterClose(t *testing.T, s suite) {
	h := s.claim(t)
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	h.Release()
	s.gone(t, h.Name())
}

// What a pool says that it offers is what its sandboxes run.
func languages(t *testing.T, s suite) {
	var names []string
	for _, l := range s.Pool.Languages() {
		names = append(names, l.Name)
		if !slices.Equal(l.Pools, []string{s.status(t).Name}) || l.Warm != (l.Name == "python") {
			t.Errorf("language %+v", l)
		}
		claim := want()
		claim.Language = l.Name
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		sandbox, err := s.Pool.Claim(ctx, claim)
		cancel()
		if err != nil {
			t.Fatalf("claim for %s: %v", l.Name, err)
		}
		h := hold(t, sandbox)
		run := program("exit(5)")
		if run.Language = l.Name; l.Name == "bash" {
			run.Code = []byte("exit 5")
		}
		if outcome, err := h.Run(t.Context(), run, newRecord()); err != nil || outcome.ExitCode != 5 {
			t.Errorf("a program in %s ended with %+v, %v", l.Name, outcome, err)
		}
		h.Release()
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"bash", "python"}) {
		t.Errorf("the languages are %v", names)
	}
	if of := slices.Sorted(slices.Values(s.status(t).Languages)); !slices.Equal(of, names) {
		t.Errorf("the pool's languages are %v", of)
	}
}

// The status counts and lists the sandboxes, and every change is announced.
func status(t *testing.T, s suite) {
	h := s.claim(t)
	s.until(t, "the claimed sandbox is listed as such", func(p execution.PoolStatus) bool {
		return p.Claimed == 1 && slices.Contains(p.Sandboxes, execution.SandboxStatus{Name: h.Name(), State: execution.SandboxClaimed})
	})
	s.until(t, "the pool is full beside it", func(p execution.PoolStatus) bool {
		return p.Warm == s.sizes.Warm && p.Desired == s.sizes.Warm && len(p.Sandboxes) == s.sizes.Warm+1
	})
	h.Release()
	s.until(t, "it is listed no more", func(p execution.PoolStatus) bool {
		return p.Claimed == 0 && !slices.ContainsFunc(p.Sandboxes, func(x execution.SandboxStatus) bool { return x.Name == h.Name() })
	})
}
