// Package lifecycle tests what becomes of sandboxes as the server comes and
// goes, on real runc containers.
package lifecycle

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

func TestI1EveryExecutionHasASandboxOfItsOwn(t *testing.T) {
	p := product.Start(t)
	seen := map[string]bool{}
	for range 6 {
		r := p.Python(t, "print('Hello from a sandbox!')")
		if r.Stdout != "Hello from a sandbox!\n" || r.Stderr != "" || r.ExitCode != 0 || r.Status != execution.StatusSucceeded {
			t.Fatalf("result %+v", r)
		}
		if seen[r.SandboxName] || r.SandboxName == "" {
			t.Fatalf("sandbox %q ran twice", r.SandboxName)
		}
		seen[r.SandboxName] = true
	}
	product.Eventually(t, 30*time.Second, "runc lists a full pool of new sandboxes", func() bool {
		warm := pools(t, p)[execution.SandboxWarm]
		slices.Sort(warm)
		return len(warm) == 3 && slices.Equal(warm, p.Containers(t)) &&
			!slices.ContainsFunc(warm, func(name string) bool { return seen[name] })
	})
}

func TestI4AKilledServerLeavesNothing(t *testing.T) {
	dir := product.StateDir(t)
	p := product.StartIn(t, dir)
	running, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan struct{})
	start := sync.OnceFunc(func() { close(started) })
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = p.StreamTo(running, execution.Request{Language: "python", Code: "import time; print('on', flush=True); time.sleep(60)"}, func(e product.Event) {
			if e.Name == execution.EventStdout {
				start()
			}
		})
	})
	<-started
	if len(p.Processes(t)) < 4 || len(p.Cgroups(t)) == 0 {
		t.Fatalf("there is nothing to leave: processes %v", p.Processes(t))
	}
	p.Kill(t)
	wg.Wait()
	// The runners notice that their server is gone.
	product.Eventually(t, 10*time.Second, "no process outlives the server", func() bool { return len(p.Processes(t)) == 0 })
	old := p.Containers(t)
	if len(old) == 0 {
		t.Fatal("the killed server left no containers: the test shows nothing")
	}

	p = product.StartIn(t, dir)
	product.Eventually(t, 30*time.Second, "the pool is full", func() bool { return len(pools(t, p)[execution.SandboxWarm]) == 3 })
	for _, name := range p.Containers(t) {
		if slices.Contains(old, name) {
			t.Errorf("container %s of the killed server is still there", name)
		}
	}
	for _, path := range p.Cgroups(t) {
		if slices.ContainsFunc(old, func(name string) bool { return strings.HasSuffix(path, name) }) {
			t.Errorf("cgroup %s of the killed server is still there", path)
		}
	}
	p.Stop(t)
	nothingLeft(t, p)
}

func TestTwoServersDoNotShareAStateFolder(t *testing.T) {
	p := product.Start(t)
	_, err := product.Launch(t, p.StateDir)
	if err == nil || !strings.Contains(err.Error(), "another server uses") {
		t.Errorf("the second server ended with %v", err)
	}
	if r := p.Python(t, "print(1)"); r.Stdout != "1\n" {
		t.Errorf("the first server suffered: %+v", r)
	}
}

// TestShutdownWhileASandboxIsMadeLeavesNothing stops servers that are in the
// midst of the refill, at several points of it.
func TestShutdownWhileASandboxIsMadeLeavesNothing(t *testing.T) {
	state := product.StateDir(t)
	for _, later := range []time.Duration{0, 5, 10, 15, 20, 30, 40} {
		p := product.StartIn(t, state, "PREHEAT_POOL_SIZE=2", "PREHEAT_JAVASCRIPT_POOL_SIZE=0")
		p.Python(t, "print(1)")
		product.Eventually(t, 10*time.Second, "the refill begins", func() bool {
			now := pools(t, p)
			// It may be over before anybody looks.
			return len(now[execution.SandboxWarming]) > 0 || len(now[execution.SandboxWarm]) == 2
		})
		time.Sleep(later * time.Millisecond)
		p.Stop(t)
		nothingLeft(t, p)
	}
}

func TestShutdownLetsAProgramEnd(t *testing.T) {
	dir := product.StateDir(t)
	p := product.StartIn(t, dir)
	var events []product.Event
	var err error
	started := make(chan struct{})
	start := sync.OnceFunc(func() { close(started) })
	var wg sync.WaitGroup
	wg.Go(func() {
		events, err = p.StreamTo(context.Background(), execution.Request{Language: "python", Code: "import time; print('up'); time.sleep(1.5); print('done')"}, func(e product.Event) {
			if e.Name == execution.EventStdout && strings.Contains(string(e.Data), "up") {
				start()
			}
		})
	})
	<-started
	p.Stop(t)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	exit := exitOf(t, events)
	if exit.Status != execution.StatusSucceeded {
		t.Errorf("exit %+v", exit)
	}
	nothingLeft(t, p)
}

func TestI6ShutdownEndsAProgramThatDoesNot(t *testing.T) {
	dir := product.StateDir(t)
	p := product.StartIn(t, dir, "PREHEAT_SHUTDOWN_GRACE=500ms")
	var events []product.Event
	started := make(chan struct{})
	start := sync.OnceFunc(func() { close(started) })
	var wg sync.WaitGroup
	wg.Go(func() {
		events, _ = p.StreamTo(context.Background(), execution.Request{Language: "bash", Code: "trap '' TERM; echo on; sleep 60 & wait"}, func(e product.Event) {
			if e.Name == execution.EventStdout {
				start()
			}
		})
	})
	<-started
	p.Stop(t)
	wg.Wait()
	if exit := exitOf(t, events); exit.Status == execution.StatusSucceeded || (exit.ExitCode != nil && *exit.ExitCode == 0) {
		t.Errorf("a program that was cut reports %+v", exit)
	}
	nothingLeft(t, p)
}

// exitOf is the one exit of a stream, which is its last event.
func exitOf(t *testing.T, events []product.Event) execution.Exit {
	t.Helper()
	var exit execution.Exit
	for i, e := range events {
		if e.Name != execution.EventExit {
			continue
		}
		if i != len(events)-1 {
			t.Errorf("event %d of %d is an exit", i, len(events))
		}
		if err := json.Unmarshal(e.Data, &exit); err != nil {
			t.Fatal(err)
		}
		return exit
	}
	t.Fatalf("no exit among %d events", len(events))
	return exit
}

func TestP1RequestsWaitInOrderOrGet429(t *testing.T) {
	p := product.Start(t, "PREHEAT_POOL_SIZE=1", "PREHEAT_MAX_SANDBOXES=2", "PREHEAT_QUEUE_TIMEOUT=2s")
	const clients = 8
	var mu sync.Mutex
	statuses := map[int]int{}
	names := map[string]bool{}
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			res, body, err := p.Do(context.Background(), "/v1/sandbox/execute", execution.Request{Language: "python", Code: "import time; time.sleep(1.2)"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			statuses[res.StatusCode]++
			switch res.StatusCode {
			case http.StatusOK:
				var r execution.Result
				if err := json.Unmarshal(body, &r); err != nil || names[r.SandboxName] {
					t.Errorf("%v, sandbox %q", err, r.SandboxName)
				}
				names[r.SandboxName] = true
			case http.StatusTooManyRequests:
				if res.Header.Get("Retry-After") == "" {
					t.Error("429 without Retry-After")
				}
			default:
				t.Errorf("status %d: %s", res.StatusCode, body)
			}
		})
	}
	wg.Wait()
	if statuses[http.StatusOK] == 0 || statuses[http.StatusTooManyRequests] == 0 {
		t.Errorf("statuses %v: some should be served and some refused", statuses)
	}
	if r := p.Python(t, "print(1)"); r.Stdout != "1\n" {
		t.Errorf("afterwards: %+v", r)
	}
}
