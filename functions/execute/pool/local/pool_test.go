package local

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

func TestPoolIsRefilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fake)
		p := start(t, f, Config{})
		count(t, p, 2, 0, 0)
		first := claim(t, p)
		time.Sleep(time.Second)
		count(t, p, 2, 0, 1)
		first.Release()
		first.Release()
		time.Sleep(time.Second)
		count(t, p, 2, 0, 0)
		if len(f.created) != 3 || f.exist() != 2 {
			t.Errorf("%d were created and %d exist", len(f.created), f.exist())
		}
		finish(t, p)
	})
}

func TestDeadWarmSandboxesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fake)
		p := start(t, f, Config{})
		f.mu.Lock()
		for _, i := range f.instances {
			i.dead = true
		}
		f.mu.Unlock()
		s, err := p.Claim(t.Context(), pool.Claim{Language: "python"})
		if err != nil || s.(*sandbox).instance.(*instance).dead || !s.Queued() {
			t.Errorf("claimed %v, %v", s, err)
		}
		finish(t, p)
	})
}

// Creations pause after failures, longer each time, and go on.
func TestFailedCreationsBackOff(t *testing.T) {
	for _, test := range []struct {
		name   string
		leave  bool
		err    error
		reason string
	}{
		{"nothing is left", false, errFake, "CreateFailed"},
		{"something is left", true, errFake, "CreateFailed"},
		{"no capacity", false, fmt.Errorf("x: %w", ErrNoCapacity), "AtLimit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{leave: test.leave, create: func(context.Context, string) error { return test.err }}
				p := start(t, f, Config{Pools: []PoolConfig{{Name: "python", Size: 1, Languages: []string{"python"}}}})
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if n := len(f.created); n < 3 || n > 12 {
					t.Errorf("%d creations were begun in ten seconds", n)
				}
				for i := 2; i < len(f.created); i++ {
					if f.created[i].Sub(f.created[i-1]) < f.created[i-1].Sub(f.created[i-2]) {
						t.Errorf("the pauses do not grow: %v", f.created)
					}
				}
				p.mu.Lock()
				problem := p.pools[0].problem
				p.mu.Unlock()
				if err := p.Ready(); err == nil || problem.Reason != test.reason {
					t.Errorf("ready: %v, problem %+v", err, problem)
				}
				f.mu.Lock()
				f.create = nil
				f.mu.Unlock()
				time.Sleep(time.Minute)
				count(t, p, 1, 0, 0)
				if f.exist() != 1 {
					t.Errorf("%d sandboxes exist", f.exist())
				}
				finish(t, p)
			})
		})
	}
}

// What a failed creation leaves counts against the maximum until it is gone.
func TestRemainsOfFailedCreationsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{
			leave:   true,
			create:  func(context.Context, string) error { return errFake },
			destroy: func(context.Context, *instance) error { return errFake },
		}
		p := start(t, f, Config{MaxSandboxes: 3})
		time.Sleep(time.Hour)
		if f.exist() != 3 || f.most != 3 {
			t.Errorf("%d exist, %d existed at once, with a maximum of 3", f.exist(), f.most)
		}
		f.mu.Lock()
		f.create, f.destroy = nil, nil
		f.mu.Unlock()
		time.Sleep(5 * time.Minute)
		count(t, p, 2, 0, 0)
		finish(t, p)
	})
}

// A sandbox that cannot be removed is tried again until it can, keeps its place
// meanwhile, and is counted once.
func TestDestructionGoesOnUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{destroy: func(_ context.Context, i *instance) error {
			i.fake.mu.Lock()
			defer i.fake.mu.Unlock()
			if i.tries <= 10 {
				return errFake
			}
			return nil
		}}
		p := start(t, f, Config{MaxSandboxes: 2})
		s := claim(t, p)
		s.Release()
		time.Sleep(3 * time.Second) // ten pauses are more, whatever their jitter
		count(t, p, 1, 0, 0)
		if f.exist() != 2 {
			t.Errorf("%d sandboxes exist, with one that cannot be removed", f.exist())
		}
		time.Sleep(5 * time.Minute)
		count(t, p, 2, 0, 0)
		if i := s.instance.(*instance); i.tries != 11 || f.most != 2 {
			t.Errorf("%d tries, %d sandboxes at once", i.tries, f.most)
		}
		if n := testutil.ToFloat64(p.metrics.leaks.WithLabelValues("python")); n != 1 {
			t.Errorf("%g leaks were counted", n)
		}
		f.mu.Lock()
		f.destroy = nil
		f.mu.Unlock()
		finish(t, p)
	})
}

// Close waits for creations, destroys what they make, and does not wait for ever.
func TestClose(t *testing.T) {
	for _, test := range []struct {
		name            string
		create, destroy func(context.Context) error
		bound           time.Duration
		fails           bool
	}{
		{"idle", nil, nil, 0, false},
		{"a slow creation", func(context.Context) error { time.Sleep(7 * time.Second); return nil }, nil, 7 * time.Second, false},
		{"a creation that ends with its context", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, 0, false},
		{"a destruction that fails", nil, func(context.Context) error { return errFake }, time.Minute, true},
		{"a destruction that hangs", nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, time.Minute, true},
		{"a backend that ignores its context", nil, func(context.Context) error { time.Sleep(time.Hour); return nil }, time.Minute, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := new(fake)
				if test.create != nil {
					f.create = func(ctx context.Context, _ string) error { return test.create(ctx) }
				}
				if test.destroy != nil {
					f.destroy = func(ctx context.Context, _ *instance) error { return test.destroy(ctx) }
				}
				p := start(t, f, Config{})
				began := time.Now()
				err := p.Close()
				if took := time.Since(began); took > test.bound {
					t.Errorf("it took %s", took)
				}
				if (err != nil) != test.fails {
					t.Errorf("the error is %v", err)
				}
				if !test.fails && f.exist() != 0 {
					t.Errorf("%d sandboxes are left", f.exist())
				}
				if _, err := p.Claim(t.Context(), pool.Claim{Language: "python"}); !errors.Is(err, pool.ErrClosed) {
					t.Errorf("a later claim: %v", err)
				}
				time.Sleep(2 * time.Hour) // until even the worst backend has returned
			})
		})
	}
}

// Old warm sandboxes are replaced, and the maximum holds all the while.
func TestOldSandboxesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fake)
		p := start(t, f, Config{MaxAge: time.Minute, MaxSandboxes: 3})
		time.Sleep(10 * time.Minute)
		count(t, p, 2, 0, 0)
		if n := len(f.created); n < 18 || n > 24 || f.most > 3 {
			t.Errorf("%d were created, %d existed at once", n, f.most)
		}
		finish(t, p)
	})
}

func TestConfig(t *testing.T) {
	good := PoolConfig{Name: "python", Size: 1, Languages: []string{"python"}}
	with := func(change func(*PoolConfig)) []PoolConfig {
		p := good
		change(&p)
		return []PoolConfig{p}
	}
	for name, pools := range map[string][]PoolConfig{
		"no pools":                            nil,
		"no name":                             with(func(p *PoolConfig) { p.Name = "" }),
		"a bad name":                          with(func(p *PoolConfig) { p.Name = "a/b" }),
		"too large":                           with(func(p *PoolConfig) { p.Size = 5 }),
		"negative":                            with(func(p *PoolConfig) { p.Size = -1 }),
		"no languages":                        with(func(p *PoolConfig) { p.Languages = nil }),
		"twice":                               {good, good},
		"a capital":                           with(func(p *PoolConfig) { p.Languages = []string{"Ruby"} }),
		"aliases of a language that it lacks": with(func(p *PoolConfig) { p.Aliases = map[string][]string{"ruby": {"rb"}} }),
		"an alias that is another's name": with(func(p *PoolConfig) {
			p.Languages, p.Aliases = []string{"python", "ruby"}, map[string][]string{"ruby": {"Python"}}
		}),
	} {
		if err := (&Config{Pools: pools, MaxSandboxes: 4}).Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := (&Config{Pools: []PoolConfig{good}, MaxSandboxes: 4}).Validate(); err != nil {
		t.Error(err)
	}
}

// A pool's aliases are offered, beside those of the image's languages.
func TestLanguagesHaveTheirAliases(t *testing.T) {
	p := &Pool{backend: &fake{}, config: Config{Pools: []PoolConfig{
		{Name: "python", Languages: []string{"python", "ruby"}, Warm: []string{"python"}, Aliases: map[string][]string{"ruby": {"rb"}}},
		{Name: "big", Languages: []string{"python"}},
	}}}
	want := []execution.Language{
		{Name: "python", Aliases: []string{"py", "python3"}, Version: "python-1", Warm: true, Pools: []string{"python", "big"}},
		{Name: "ruby", Aliases: []string{"rb"}, Version: "ruby-1", Pools: []string{"python"}},
	}
	if got := p.Languages(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
