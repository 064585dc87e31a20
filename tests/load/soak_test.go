// Package load runs many programs, good and hostile, and looks for what they
// leave behind.
package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// clients send programs at once.
const clients = 16

// program is one kind of program and how it must end.
type program struct {
	name    string
	request execution.Request
	status  execution.Status
	exit    int
	stdout  string // "" means anything
	// gone says that the client goes away in the middle.
	gone bool
}

func python(code string) execution.Request {
	return execution.Request{Language: "python", Code: code}
}

func within(r execution.Request, l execution.Limits) execution.Request {
	r.Limits = l
	return r
}

func programs() []program {
	second := execution.Limits{TimeoutSeconds: 1}
	bash := func(code string) execution.Request { return execution.Request{Language: "bash", Code: code} }
	return []program{
		{name: "print", request: python("print(6 * 7)"), status: execution.StatusSucceeded, stdout: "42\n"},
		{name: "print", request: python("import json; print(json.dumps([1]))"), status: execution.StatusSucceeded, stdout: "[1]\n"},
		{name: "bash", request: bash("echo $((6 * 7))"), status: execution.StatusSucceeded, stdout: "42\n"},
		{name: "stdin", request: execution.Request{Language: "python", Code: "import sys; sys.stdout.write(sys.stdin.read())", Stdin: "a\nb"}, status: execution.StatusSucceeded, stdout: "a\nb"},
		{name: "artifact", request: python("open('a.csv', 'w').write('1')"), status: execution.StatusSucceeded},
		{name: "exit code", request: python("import sys; sys.exit(3)"), status: execution.StatusFailed, exit: 3},
		{name: "exception", request: python("1 / 0"), status: execution.StatusFailed, exit: 1},
		{name: "signal", request: python("import os; os.kill(os.getpid(), 11)"), status: execution.StatusFailed, exit: 139},
		{name: "loop", request: within(python("print('on')\nwhile True: pass"), second), status: execution.StatusTimedOut, exit: 137, stdout: "on\n"},
		{name: "stopped", request: within(python("import os, signal; os.kill(0, signal.SIGSTOP)"), second), status: execution.StatusTimedOut, exit: 137},
		{name: "memory", request: within(python("x = []\nwhile True: x.append(bytearray(1 << 20))"), execution.Limits{MemoryBytes: 64 << 20}), status: execution.StatusOutOfMemory, exit: 137},
		{name: "flood", request: within(bash("yes"), execution.Limits{TotalOutputBytes: 8 << 20}), status: execution.StatusOutputLimit, exit: 137},
		{name: "daemon", request: bash("setsid sh -c 'trap \"\" TERM; sleep 1000' & (sleep 1000 &) ; echo up"), status: execution.StatusSucceeded, stdout: "up\n"},
		{name: "fork bomb", request: within(bash("f() { f | f & }; f; sleep 10"), second), status: execution.StatusTimedOut, exit: 137},
		{name: "gone", request: python("import time; time.sleep(60)"), gone: true},
	}
}

// heavy programs take a second each and come less often than the others.
func (p program) heavy() bool {
	return p.status == execution.StatusTimedOut || p.name == "memory"
}

// state is what could grow.
type state struct {
	rss                                         int // KiB
	fds, goroutines, processes, cgroups, mounts int
}

func (s state) String() string {
	return fmt.Sprintf("rss=%d KiB fds=%d goroutines=%d processes=%d cgroups=%d mounts=%d", s.rss, s.fds, s.goroutines, s.processes, s.cgroups, s.mounts)
}

func TestSoak(t *testing.T) {
	n := 300
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	p := product.Start(t, "PREHEAT_POOL_SIZE=8", "PREHEAT_QUEUE_TIMEOUT=60s")
	drive(t, p, n/10, mixed) // what is made once, such as buffers
	connect(t, p)
	before := settled(t, p)
	began := time.Now()
	counts := drive(t, p, n, mixed)
	took := time.Since(began)
	var after state
	// The server keeps an idle worker for some seconds: only what stays has leaked.
	for end := time.Now().Add(time.Minute); ; {
		if after = settled(t, p); after.goroutines <= before.goroutines+4 || time.Now().After(end) {
			break
		}
	}
	t.Logf("executions=%d clients=%d seconds=%.0f per_second=%.1f wrong=%d", n, clients, took.Seconds(), float64(n)/took.Seconds(), counts.wrong.Load())
	t.Logf("before: %v", before)
	t.Logf("after:  %v", after)
	if after.processes != before.processes || after.cgroups != before.cgroups || after.mounts != before.mounts {
		t.Error("processes, cgroups or mounts have leaked")
	}
	if after.fds > before.fds+4 || after.goroutines > before.goroutines+4 {
		t.Error("file descriptors or goroutines have leaked")
	}
	if after.rss > before.rss*2+32<<10 {
		t.Error("memory has grown")
	}
}

// counts is what drive found out.
type counts struct {
	wrong atomic.Int64
	// names are the sandboxes that have run a program.
	names sync.Map
}

// mixed draws one of all programs, heavy ones less often.
func mixed(rng *rand.Rand) program {
	all := programs()
	x := all[rng.IntN(len(all))]
	if x.heavy() && rng.IntN(4) > 0 {
		return all[0]
	}
	return x
}

// drive runs n programs, drawn by draw at random from a fixed seed.
func drive(t *testing.T, p *product.Product, n int, draw func(*rand.Rand) program) *counts {
	t.Helper()
	var c counts
	var next atomic.Int64
	var wg sync.WaitGroup
	for client := range clients {
		rng := rand.New(rand.NewPCG(uint64(client), uint64(n)))
		wg.Go(func() {
			for next.Add(1) <= int64(n) {
				x := draw(rng)
				if err := try(p, x, &c.names); err != nil {
					c.wrong.Add(1)
					t.Errorf("%s: %v", x.name, err)
				}
			}
		})
	}
	wg.Wait()
	return &c
}

// try runs a program and says what is wrong with its result. names are the
// sandboxes so far: none may come twice (I1, I2).
func try(p *product.Product, x program, names *sync.Map) error {
	ctx := context.Background()
	if x.gone {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	res, body, err := p.Do(ctx, "/v1/sandbox/execute", x.request)
	if x.gone {
		if err == nil && res.StatusCode == http.StatusOK {
			return fmt.Errorf("it ended before its client left: %s", body)
		}
		return nil
	}
	if err != nil {
		return err
	}
	var r execution.Result
	if err := json.Unmarshal(body, &r); err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", res.StatusCode, body)
	}
	if _, again := names.LoadOrStore(r.SandboxName, true); again || r.SandboxName == "" {
		return fmt.Errorf("sandbox %q has run a program before", r.SandboxName)
	}
	if r.Status != x.status || r.ExitCode != x.exit || (x.stdout != "" && r.Stdout != x.stdout) {
		return fmt.Errorf("%s, exit code %d, stdout %.100q, stderr %.300q, notes %q", r.Status, r.ExitCode, r.Stdout, r.Stderr, r.Notes)
	}
	return nil
}

// connect sends as many programs at once as there are clients, so that chat keeps
// a connection to execute for each: no later run can then open more of them.
func connect(t *testing.T, p *product.Product) {
	t.Helper()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			if res, body, err := p.Do(t.Context(), "/v1/sandbox/execute", python("import time; time.sleep(1)")); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("connecting: %v, %s", err, body)
			}
		})
	}
	wg.Wait()
}

// settled waits until the pools are full and idle and returns the state then.
func settled(t *testing.T, p *product.Product) state {
	t.Helper()
	product.Eventually(t, time.Minute, "the pools are full and idle", func() bool {
		var pools struct{ Pools []execution.PoolStatus }
		p.Get(t, "/v1/pools", &pools)
		for _, pool := range pools.Pools {
			if pool.Warm != pool.Desired || pool.Warming+pool.Claimed > 0 {
				return false
			}
		}
		return p.Leftovers(t).Containers == 9
	})
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(500 * time.Millisecond) // connections end on the other side, too
	left := p.Leftovers(t)
	return state{
		rss: left.RSS, fds: left.FDs, goroutines: goroutines(t, p), processes: left.Processes, cgroups: left.Cgroups, mounts: left.Mounts,
	}
}

func goroutines(t *testing.T, p *product.Product) int {
	t.Helper()
	res, err := http.Get(p.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no go_goroutines in the metrics")
	return 0
}
