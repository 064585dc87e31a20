// Package hostile has programs that fail or misbehave, for the tests of doors:
// each runs them through the real client of its protocol, and what the client
// shows is held against what must be said.
package hostile

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

const patience = time.Minute

// Environment is that of the server: its queue ends soon, for a caller that gets
// no sandbox.
func Environment(door string) []string {
	return []string{"PREHEAT_DOORS=" + door, "PREHEAT_POOL_SIZE=2", "PREHEAT_MAX_SANDBOXES=2", "PREHEAT_QUEUE_TIMEOUT=8s"}
}

// Python is a request to run a program.
func Python(code string) execution.Request { return execution.Request{Language: "python", Code: code} }

// Within gives a request a time limit.
func Within(r execution.Request, seconds float64) execution.Request {
	r.Limits.TimeoutSeconds = seconds
	return r
}

// Shown is what a client shows of a program.
type Shown struct {
	// Failed: the client takes it for a failure. Text is all that it shows as
	// text.
	Failed bool
	Text   string
	// Images are those of figures, HTML what is meant to be rendered.
	Images, HTML []string
}

// Carries is what a protocol has a place for.
type Carries struct {
	// Results: figures and tables. Progress: output while the program runs.
	Results, Progress bool
}

// Run runs a program through a door. output, if not nil, is called when some of
// the program's output has reached the client while it runs.
type Run func(t *testing.T, r execution.Request, output func()) Shown

// programs are those that fail or misbehave, and what every door must show.
var programs = []struct {
	name    string
	request execution.Request
	failed  bool
	words   []string
}{
	{"out of memory", Python("print('before', flush=True)\nx = []\nwhile True: x.append(bytearray(1 << 20))"), true, []string{"before", "memory"}},
	{"time limit", Within(Python("import time\nprint('before', flush=True)\ntime.sleep(60)"), 1), true, []string{"before", "time limit"}},
	{"100 MB of output", Python("for _ in range(100): print('x' * (1 << 20))"), true, []string{"xxxx", "more output than it may", "incomplete", "left out"}},
	{"output that is cut", Python("for i in range(1 << 18): print(f'{i:8}')"), true, []string{"       0\n", "  262143", "incomplete", "left out"}},
	{"segmentation fault", Python("import ctypes\nprint('before', flush=True)\nctypes.string_at(0)"), true, []string{"before", "SIGSEGV"}},
	{"fork bomb", Within(Python("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"), 2), true, []string{"time limit"}},
	{"bytes that are not UTF-8", Python("import os\nos.write(1, b'a\\xff\\xfeb\\n')"), false, []string{"a\uFFFD"}},
	{"exit code", Python("print('before')\nraise SystemExit(3)"), true, []string{"before", "exit code 3"}},
}

// Test runs the programs through a door.
func Test(t *testing.T, shared *product.Product, carries Carries, run Run) {
	for _, test := range programs {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, test.request, nil)
			if got.Failed != test.failed {
				t.Errorf("failed: %t", got.Failed)
			}
			for _, word := range test.words {
				if !strings.Contains(got.Text, word) {
					t.Errorf("the client does not show %q, but %.300q … %.300q", word, got.Text, got.Text[max(0, len(got.Text)-300):])
				}
			}
		})
	}
	t.Run("figure", func(t *testing.T) {
		got := run(t, Python("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"), nil)
		if !carries.Results {
			if got.Failed || !strings.Contains(got.Text, "figures") {
				t.Errorf("%t: %q", got.Failed, got.Text)
			}
			return
		}
		if got.Failed || len(got.Images) != 1 || !strings.HasPrefix(got.Images[0], "\x89PNG") {
			t.Errorf("%t: %d images: %.200s", got.Failed, len(got.Images), got.Text)
		}
	})
	t.Run("table with a script", func(t *testing.T) {
		const script = "<script>alert(1)</script>"
		got := run(t, Python("class T:\n    def _repr_html_(self): return '<table><tr><td>7</td></tr></table>"+script+"'\n    def __repr__(self): return 'a table with 7'\nT()"), nil)
		if !carries.Results {
			if got.Failed || strings.Contains(got.Text, "<script>") {
				t.Errorf("%t: %q", got.Failed, got.Text)
			}
			return
		}
		if got.Failed || len(got.HTML) != 1 || !strings.Contains(got.HTML[0], script) {
			t.Errorf("%t: HTML %q", got.Failed, got.HTML)
		}
		if strings.Contains(got.Text, "<script>") || !strings.Contains(got.Text, "a table with 7") {
			t.Errorf("the text is %q", got.Text)
		}
	})
	t.Run("killed sandbox", func(t *testing.T) {
		kill := sync.OnceFunc(func() { killSandboxes(t, shared) })
		got := run(t, Python("import time\nprint('before', flush=True)\ntime.sleep(60)"), kill)
		if carries.Progress && !strings.Contains(got.Text, "before") {
			t.Errorf("what there was of the output is not shown: %q", got.Text)
		}
		if !got.Failed || !strings.Contains(got.Text, "sandbox ended before it reported") {
			t.Errorf("%t: %q", got.Failed, got.Text)
		}
	})
	t.Run("no sandbox", func(t *testing.T) {
		release := occupy(t, shared, 2)
		defer release()
		got := run(t, Python("print('never')"), nil)
		if !got.Failed || strings.Contains(got.Text, "never") || !strings.Contains(got.Text, "in use") || !strings.Contains(got.Text, "again in") {
			t.Errorf("%t: %q", got.Failed, got.Text)
		}
	})
}

// killSandboxes kills the sandboxes that run programs.
func killSandboxes(t *testing.T, p *product.Product) {
	for _, name := range Claimed(t, p) {
		out, err := exec.Command(filepath.Join(product.Root(t), "build/bin/runc"), "--root", filepath.Join(p.StateDir, "runc"), "state", name).Output()
		var state struct{ Pid int }
		if err != nil || json.Unmarshal(out, &state) != nil || state.Pid <= 1 {
			t.Errorf("the state of %s: %v %s", name, err, out)
			continue
		}
		if err := syscall.Kill(state.Pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

// Claimed are the sandboxes that run programs.
func Claimed(t *testing.T, p *product.Product) []string {
	t.Helper()
	var list struct{ Pools []execution.PoolStatus }
	p.Get(t, "/v1/pools", &list)
	var names []string
	for _, pool := range list.Pools {
		for _, s := range pool.Sandboxes {
			if s.State == execution.SandboxClaimed {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// occupy has n programs run until release.
func occupy(t *testing.T, p *product.Product, n int) (release func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			_, _ = p.StreamTo(ctx, Within(Python("import time\ntime.sleep(300)"), 300), nil)
		})
	}
	product.Eventually(t, patience, "all sandboxes are in use", func() bool { return len(Claimed(t, p)) == n })
	return func() {
		cancel()
		running.Wait()
		product.Eventually(t, patience, "the sandboxes are free", func() bool { return len(Claimed(t, p)) == 0 })
	}
}
