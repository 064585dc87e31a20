package ending

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// soon is for what is to be over within a second; the rest is for machines
// that have other things to do.
const soon = 10 * time.Second

// gone waits until no process of a sandbox is left.
func gone(t *testing.T, sandbox string) {
	t.Helper()
	product.Eventually(t, soon, "no process is left in the sandbox", func() bool { return len(product.InSandbox(t, sandbox)) == 0 })
}

// daemon forks twice, leaves its session and ignores every signal it can.
const daemon = `import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for s in range(1, 65):
            try: signal.signal(s, signal.SIG_IGN)
            except (OSError, ValueError): pass
        time.sleep(1000)
    os._exit(0)
os.wait()
print("end")`

func TestE4E5NothingOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]execution.Request{
		"E4: background child with stdout": python("import subprocess; subprocess.Popen(['sleep', '1000']); print('end')"),
		"E4: shell job":                    bash("sleep 1000 & echo end"),
		"E4: disowned":                     bash("(trap '' HUP TERM; sleep 1000) & disown; echo end"),
		"E5: daemon":                       python(daemon),
		"E5: nohup setsid":                 bash("nohup setsid sleep 1000 >/dev/null 2>&1 & echo end"),
		"E5: node detached":                javascript("require('child_process').spawn('sleep', ['1000'], {detached: true, stdio: 'inherit'}).unref(); console.log('end')"),
		"stopped child":                    python("import os, signal, time\npid = os.fork()\nif pid == 0: time.sleep(1000)\nos.kill(pid, signal.SIGSTOP)\nprint('end')"),
		"a pipe's end in a message":        python("import socket\na, b = socket.socketpair()\n_ = socket.send_fds(a, [b'x'], [1, 2, a.fileno(), b.fileno()])\nprint('end')"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, request)
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Wrote(t, r, "end\n", "")
			if r.TimingsMS.Run > 20_000 {
				t.Errorf("it took %v ms", r.TimingsMS.Run)
			}
			gone(t, r.SandboxName)
		})
	}
}

// TestE9ForkBombs: they end by their limit, and a sandbox beside them works.
func TestE9ForkBombs(t *testing.T) {
	t.Parallel()
	bombs := map[string]execution.Request{
		"python":  python("import os\nwhile True: os.fork()"),
		"bash":    bash(":(){ :|:& };:\nsleep 1000"),
		"busy":    python("import os\nwhile True:\n    try: os.fork()\n    except OSError:\n        while True: pass"),
		"threads": python("import threading\ndef f():\n    while True: pass\ntry:\n    while True: threading.Thread(target=f, daemon=True).start()\nexcept RuntimeError: pass\nwhile True: pass"),
	}
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var beside sync.WaitGroup
			defer beside.Wait()
			beside.Go(func() {
				for range 3 {
					r := shared.Execute(t, within(python("print(1)"), 10))
					product.Ended(t, r, execution.StatusSucceeded, 0, "")
				}
			})
			r := shared.Execute(t, within(bomb, 1))
			// The first process of a bomb may find its own end, by an error
			// of the fork: that is an ordinary failure.
			if r.Status != execution.StatusTimedOut && r.Status != execution.StatusFailed {
				t.Errorf("status %s, exit code %d", r.Status, r.ExitCode)
			}
			if r.Usage.WallMS > 20_000 {
				t.Errorf("it took %v ms to end", r.Usage.WallMS)
			}
			gone(t, r.SandboxName)
		})
	}
}

func TestE10NoZombies(t *testing.T) {
	t.Parallel()
	// Their parents end first, so that the sandbox's first process has to
	// take them; a few at a time, since their number is limited.
	r := shared.Execute(t, python(`import os, time
for i in range(200):
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.01)
        os._exit(0)
    os.wait()
    if i % 50 == 49: time.sleep(0.3)
for _ in range(1000):
    left = [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
    if not left: break
    time.sleep(0.01)
print(left)`))
	product.Ended(t, r, execution.StatusSucceeded, 0, "")
	product.Wrote(t, r, "[]\n", "")
}

// TestE12 cancels a program that is known by an argument no other has.
func TestE12ClientGoesAway(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"json", "stream"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			seconds := fmt.Sprintf("1000.%09d", rand.IntN(1e9))
			request := within(bash("echo begun; sleep "+seconds), 60)
			ctx, cancel := context.WithCancel(t.Context())
			var call sync.WaitGroup
			defer call.Wait()
			defer cancel()
			call.Go(func() {
				if mode == "json" {
					_, _, _ = shared.Do(ctx, "/v1/sandbox/execute", request)
				} else {
					_, _ = shared.StreamTo(ctx, request, nil)
				}
			})
			running := func() bool { return len(product.Running(t, seconds)) > 0 }
			product.Eventually(t, time.Minute, "the program runs", running)
			cancel()
			product.Eventually(t, soon, "the program is dead", func() bool { return !running() })
		})
	}
}

// firstProcess is a sandbox's PID 1: the one with the smallest number there.
func firstProcess(t *testing.T, sandbox string) int {
	t.Helper()
	pids := product.InSandbox(t, sandbox)
	if len(pids) == 0 {
		t.Fatalf("there is no process in sandbox %s", sandbox)
	}
	first := pids[0]
	for _, pid := range pids {
		first = min(first, pid)
	}
	return first
}

// TestE14 kills a sandbox while its program runs.
func TestE14SandboxKilled(t *testing.T) {
	t.Parallel()
	request := within(python("import time\nprint('partial', flush=True)\ntime.sleep(60)"), 60)
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		var sandbox string
		var once sync.Once
		events, err := shared.StreamTo(t.Context(), request, func(e product.Event) {
			switch e.Name {
			case execution.EventStart:
				sandbox = product.Decode[execution.Start](t, e).SandboxName
			case execution.EventStdout:
				once.Do(func() { kill(t, firstProcess(t, sandbox)) })
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		exit := product.Exit(t, events)
		product.Equal(t, "status", exit.Status, execution.StatusPlatformError)
		if exit.ExitCode != nil || exit.Problem == nil || !exit.Problem.IsKind(execution.ProblemSandboxLost) {
			t.Errorf("the exit is %+v", exit)
		}
	})
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		seconds := fmt.Sprintf("1000.%09d", rand.IntN(1e9))
		request := within(bash("echo partial; sleep "+seconds), 60)
		var killer sync.WaitGroup
		defer killer.Wait()
		killer.Go(func() {
			product.Eventually(t, time.Minute, "the program runs", func() bool { return len(product.Running(t, seconds)) > 0 })
			kill(t, parentOf(t, parentOf(t, product.Running(t, seconds)[0])))
		})
		problem := shared.Problem(t, 502, request)
		if !problem.IsKind(execution.ProblemSandboxLost) || problem.Partial == nil || problem.Partial.Stdout != "partial\n" {
			t.Errorf("the problem is %+v, partial %+v", problem, problem.Partial)
		}
		if !strings.HasPrefix(problem.Partial.SandboxName, "python-") {
			t.Errorf("the sandbox is %q", problem.Partial.SandboxName)
		}
	})
}
