package local

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// fake is a backend whose sandboxes are nothing but what the test says of them.
type fake struct {
	mu sync.Mutex
	// create and destroy are called, if they are set, by what they name.
	create  func(ctx context.Context, name string) error
	destroy func(ctx context.Context, i *instance) error
	run     func(ctx context.Context, i *instance, sink pool.Sink) (pool.Outcome, error)
	// turn is a run in a session; without it there are no sessions. keep is why
	// one cannot be opened.
	turn func(ctx context.Context, k *kept, sink pool.Sink) (pool.SessionOutcome, error)
	keep error
	// leave says that a failed creation leaves an instance.
	leave bool

	created   []time.Time
	instances map[string]*instance // that exist
	most      int                  // that have existed at once
}

type instance struct {
	fake *fake
	name string
	// all are under fake.mu.
	dead          bool
	memory        int64
	oomKills      int64
	deprioritized int
	hasProgram    bool
	ended, tries  int
	endings       chan struct{} // gets one for each program that was ended
}

func (f *fake) Version(language string) string { return language + "-1" }

func (f *fake) Create(ctx context.Context, _ PoolConfig, name string) (Instance, error) {
	i := &instance{fake: f, name: name, endings: make(chan struct{}, 10)}
	f.mu.Lock()
	f.created = append(f.created, time.Now())
	create, leave := f.create, f.leave
	f.instances[name] = i
	f.most = max(f.most, len(f.instances))
	f.mu.Unlock()
	if create == nil {
		return i, nil
	}
	err := create(ctx, name)
	if err != nil && !leave {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.instances, name)
		return nil, err
	}
	return i, err
}

func (f *fake) exist() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.instances)
}

func (i *instance) Run(ctx context.Context, _ pool.Run, sink pool.Sink) (pool.Outcome, error) {
	return i.fake.run(ctx, i, sink)
}

func (i *instance) Alive() bool {
	i.fake.mu.Lock()
	defer i.fake.mu.Unlock()
	return !i.dead
}

func (i *instance) SetMemory(limit int64) error {
	i.memory = limit
	return nil
}

func (i *instance) OOMKills() int64 { return i.oomKills }

func (i *instance) Deprioritize() error {
	i.fake.mu.Lock()
	defer i.fake.mu.Unlock()
	i.deprioritized++
	return nil
}

func (i *instance) EndProgram(context.Context) (bool, error) {
	i.fake.mu.Lock()
	defer i.fake.mu.Unlock()
	if !i.hasProgram {
		return false, nil
	}
	i.hasProgram = false
	i.ended++
	i.endings <- struct{}{}
	return true, nil
}

func (i *instance) Destroy(ctx context.Context) error {
	i.fake.mu.Lock()
	i.tries++
	destroy := i.fake.destroy
	i.fake.mu.Unlock()
	if destroy != nil {
		if err := destroy(ctx, i); err != nil {
			return err
		}
	}
	i.fake.mu.Lock()
	defer i.fake.mu.Unlock()
	delete(i.fake.instances, i.name)
	return nil
}

// start starts a pool in the test's bubble, which waits until it is at its size.
func start(t *testing.T, f *fake, c Config) *Pool {
	t.Helper()
	f.instances = map[string]*instance{}
	if len(c.Pools) == 0 {
		c.Pools = []PoolConfig{{Name: "python", Size: 2, Languages: []string{"python"}}}
	}
	if c.MaxSandboxes == 0 {
		c.MaxSandboxes = 4
	}
	if c.MaxCreating == 0 {
		c.MaxCreating = 2
	}
	c.WarmTimeout = 30 * time.Second
	p, err := New(c, f, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return p
}

// finish closes the pool, which must leave nothing.
func finish(t *testing.T, p *Pool) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if n := p.backend.(*fake).exist(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// claim claims a sandbox for Python.
func claim(t *testing.T, p *Pool) *sandbox {
	t.Helper()
	s, err := p.Claim(t.Context(), pool.Claim{Language: "python"})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*sandbox)
}

// count checks the numbers of warm, warming and claimed sandboxes.
func count(t *testing.T, p *Pool, warm, warming, claimed int) {
	t.Helper()
	synctest.Wait()
	s := p.Status()[0]
	if got := []int{s.Warm, s.Warming, s.Claimed}; !slices.Equal(got, []int{warm, warming, claimed}) {
		t.Errorf("%d are warm, warming and claimed, not %d", got, []int{warm, warming, claimed})
	}
}

// nothing is a sink.
type nothing struct{ pool.Sink }

func (nothing) Started() {}

var errFake = errors.New("fake failure")
