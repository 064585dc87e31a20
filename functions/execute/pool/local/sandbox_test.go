package local

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

var killedOutcome = pool.Outcome{Status: execution.StatusFailed, ExitCode: 137, Signal: "SIGKILL"}

// A program that outlives its limit is ended from outside, soon after it.
func TestProgramsAreEndedAtTheirLimit(t *testing.T) {
	const limit = 2 * time.Second
	for _, test := range []struct {
		name string
		// start is when the runner reports the start, 0 never.
		start time.Duration
		// outlives says that the runner does not end the program itself.
		outlives bool
		reports  pool.Outcome
		want     execution.Status
		within   time.Duration
	}{
		{"in time", 1, false, pool.Outcome{Status: execution.StatusSucceeded}, execution.StatusSucceeded, limit},
		{"killed by the runner", 1, false, pool.Outcome{Status: execution.StatusTimedOut, ExitCode: 137}, execution.StatusTimedOut, limit},
		{"killed by itself", 1, false, killedOutcome, execution.StatusFailed, limit},
		{"starved runner", 1, true, killedOutcome, execution.StatusTimedOut, limit + 2*limitGrace},
		{"starved runner that knew the limit", 1, true, pool.Outcome{Status: execution.StatusTimedOut}, execution.StatusTimedOut, limit + 2*limitGrace},
		{"starved before the start", 0, true, killedOutcome, execution.StatusTimedOut, limit + startTimeout + 2*limitGrace},
		{"started late", 2 * time.Second, true, killedOutcome, execution.StatusTimedOut, 2*time.Second + limit + 2*limitGrace},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{run: func(ctx context.Context, i *instance, sink pool.Sink) (pool.Outcome, error) {
					if test.start > 0 {
						time.Sleep(test.start)
						sink.Started()
					}
					if !test.outlives {
						time.Sleep(limit - time.Second)
						return test.reports, nil
					}
					i.fake.mu.Lock()
					i.hasProgram = true
					i.fake.mu.Unlock()
					<-i.endings
					return test.reports, nil
				}}
				p := start(t, f, Config{})
				s := claim(t, p)
				began := time.Now()
				got, err := s.Run(t.Context(), pool.Run{Limits: pool.Limits{Timeout: limit}}, nothing{})
				took := time.Since(began)
				if err != nil || got.Status != test.want || took > test.within {
					t.Errorf("%s, %v after %s", got.Status, err, took)
				}
				if test.outlives && took < test.start+limit {
					t.Errorf("it was ended after %s", took)
				}
				if i := s.instance.(*instance); i.ended > 1 || i.deprioritized != 1 {
					t.Errorf("ended %d times, deprioritized %d times", i.ended, i.deprioritized)
				}
				s.Release()
				finish(t, p)
			})
		})
	}
}

// A backend may end the runner with its program. The time limit is still what
// ended it.
func TestRunnerEndedAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{run: func(_ context.Context, i *instance, sink pool.Sink) (pool.Outcome, error) {
			sink.Started()
			i.fake.mu.Lock()
			i.hasProgram = true
			i.fake.mu.Unlock()
			<-i.endings
			i.fake.mu.Lock()
			i.dead = true
			i.fake.mu.Unlock()
			return pool.Outcome{}, pool.ErrSandboxLost
		}}
		p := start(t, f, Config{})
		s := claim(t, p)
		got, err := s.Run(t.Context(), pool.Run{Limits: pool.Limits{Timeout: time.Second}}, nothing{})
		if err != nil || got.Status != execution.StatusTimedOut || got.ExitCode != 137 || len(got.Notes) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		finish(t, p)
	})
}

// A runner that is busy with what a program left is not disturbed.
func TestRunnerOutlivesTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{run: func(_ context.Context, _ *instance, sink pool.Sink) (pool.Outcome, error) {
			sink.Started()
			time.Sleep(7 * time.Second)
			return pool.Outcome{Status: execution.StatusFailed, ExitCode: 7}, nil
		}}
		p := start(t, f, Config{})
		s := claim(t, p)
		got, err := s.Run(t.Context(), pool.Run{Limits: pool.Limits{Timeout: time.Second}}, nothing{})
		if err != nil || got.Status != execution.StatusFailed || got.ExitCode != 7 {
			t.Errorf("%+v, %v", got, err)
		}
		finish(t, p)
	})
}

// A runner that cannot see the memory limit reports no more than that its program
// was killed.
func TestProgramsThatWereKilled(t *testing.T) {
	for _, test := range []struct {
		name     string
		oomKills int64
		reports  pool.Outcome
		want     execution.Status
	}{
		{"by somebody", 0, killedOutcome, execution.StatusFailed},
		{"for memory", 1, killedOutcome, execution.StatusOutOfMemory},
		{"a child for memory", 1, pool.Outcome{Status: execution.StatusFailed, ExitCode: 3}, execution.StatusFailed},
		{"a child for memory, and well", 1, pool.Outcome{Status: execution.StatusSucceeded}, execution.StatusSucceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{run: func(_ context.Context, i *instance, sink pool.Sink) (pool.Outcome, error) {
				sink.Started()
				i.oomKills = test.oomKills
				return test.reports, nil
			}}
			p := start(t, f, Config{})
			s := claim(t, p)
			got, err := s.Run(t.Context(), pool.Run{Limits: pool.Limits{Timeout: time.Second}}, nothing{})
			if err != nil || got.Status != test.want {
				t.Errorf("%s: %+v, %v", test.name, got, err)
			}
			finish(t, p)
		})
	}
}

func TestLostSandboxes(t *testing.T) {
	lost := errors.Join(pool.ErrSandboxLost, errFake)
	for _, test := range []struct {
		name     string
		oomKills int64
		err      error
		status   execution.Status
		want     error
	}{
		{"lost", 0, lost, "", pool.ErrSandboxLost},
		{"killed for memory", 2, lost, execution.StatusOutOfMemory, nil},
		{"a failure of the runner", 2, errFake, "", errFake},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{run: func(_ context.Context, i *instance, _ pool.Sink) (pool.Outcome, error) {
				i.oomKills = test.oomKills
				return pool.Outcome{}, test.err
			}}
			p := start(t, f, Config{})
			s := claim(t, p)
			got, err := s.Run(t.Context(), pool.Run{Limits: pool.Limits{Timeout: time.Second, Memory: 7}}, nothing{})
			if got.Status != test.status || !errors.Is(err, test.want) || s.instance.(*instance).memory != 7 {
				t.Errorf("%s: %+v, %v", test.name, got, err)
			}
			finish(t, p)
		})
	}
}
