package attacks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// starve takes the processors from the runner, which is of the same user: its
// threads get the least claim to them, and a hundred processes want them.
const starve = `import os, signal
def each(f, *args):
    for t in map(int, os.listdir("/proc/1/task")):
        try: f(t, *args)
        except OSError: pass
def idle(t): os.sched_setscheduler(t, os.SCHED_IDLE, os.sched_param(0))
def nice(t): os.setpriority(os.PRIO_PROCESS, t, 19)
def nice_all():
    try: os.setpriority(os.PRIO_USER, 0, 19)
    except OSError: pass
def pin(t): os.sched_setaffinity(t, {min(os.sched_getaffinity(0))})
def burn():
    for _ in range(100):
        if os.fork() == 0:
            while True: pass
print("here I am", flush=True)
`

// TestS14RunnerIsStarved: a program ends soon after its limit whatever it does to
// the runner of its sandbox, nothing of it goes on, and its place comes back.
func TestS14RunnerIsStarved(t *testing.T) {
	p := product.Start(t, "PREHEAT_POOL_SIZE=1", "PREHEAT_JAVASCRIPT_POOL_SIZE=0", "PREHEAT_MAX_SANDBOXES=2")
	for _, test := range []struct{ name, code string }{
		{"idle class", "each(idle); burn()\nwhile True: pass"},
		{"idle class, one processor", "each(idle); each(pin); burn()\nwhile True: pass"},
		{"nice 19", "each(nice); burn()\nwhile True: pass"},
		{"nice 19 for its user", "nice_all(); burn()\nwhile True: pass"},
		{"one processor", "each(pin); os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); burn()\nwhile True: pass"},
		{"nice 19, one processor", "each(nice); each(pin); burn()\nwhile True: pass"},
		{"stopped parents", "each(idle); each(pin); burn(); os.kill(os.getpid(), signal.SIGSTOP)"},
		{"processes that multiply", "each(idle); each(pin)\nwhile True:\n    try: os.fork()\n    except OSError: pass"},
	} {
		t.Run(test.name, func(t *testing.T) {
			began := time.Now()
			r := p.Execute(t, execution.Request{Language: "python", Code: starve + test.code, Limits: execution.Limits{TimeoutSeconds: 2}})
			row(t, test.code, fmt.Sprintf("%s after %s", r.Status, time.Since(began).Round(time.Millisecond)))
			product.Ended(t, r, execution.StatusTimedOut, 137, "SIGKILL")
			product.Equal(t, "stdout", r.Stdout, "here I am\n")
			product.Eventually(t, 10*time.Second, "the processes of "+r.SandboxName+" are gone", func() bool {
				return len(product.InSandbox(t, r.SandboxName)) == 0
			})
		})
	}
	t.Run("and exit", func(t *testing.T) {
		r := p.Execute(t, execution.Request{Language: "python", Code: starve + "each(idle); each(pin); burn(); os._exit(7)", Limits: execution.Limits{TimeoutSeconds: 2}})
		outcome(t, "the runner in the idle class, a hundred busy processes, then exit code 7", r)
		if exits := []int{7, 137}; !slices.Contains(exits, r.ExitCode) || r.Status == execution.StatusSucceeded {
			t.Errorf("%s with exit code %d", r.Status, r.ExitCode)
		}
	})
	t.Run("and exit in time", func(t *testing.T) {
		// It starves itself, too.
		r := p.Execute(t, execution.Request{Language: "python", Code: starve + "each(idle); burn(); os._exit(7)", Limits: execution.Limits{TimeoutSeconds: 60}})
		outcome(t, "the same, with a minute for it", r)
		product.Ended(t, r, execution.StatusFailed, 7, "")
	})
	// A place that was lost would be missed: there are two of them.
	product.Eventually(t, time.Minute, "the pool is whole again", func() bool {
		var pools struct{ Pools []execution.PoolStatus }
		p.Get(t, "/v1/pools", &pools)
		return len(pools.Pools) == 1 && pools.Pools[0].Warm == 1 && len(p.Containers(t)) == 1
	})
	for i := range 3 {
		r := p.Python(t, fmt.Sprintf("print(%d)", i))
		product.Ended(t, r, execution.StatusSucceeded, 0, "")
	}
}
