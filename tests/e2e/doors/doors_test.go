// Package doors_test runs programs through the doors, by real clients of their
// protocols, and looks at what the clients show.
package doors_test

import (
	"encoding/json"
	"os"
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

// shared has a queue that ends soon, for a caller that gets no sandbox.
var shared *product.Product

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_DOORS=mcp", "PREHEAT_POOL_SIZE=2", "PREHEAT_MAX_SANDBOXES=2", "PREHEAT_QUEUE_TIMEOUT=8s"))
}

func python(code string) execution.Request { return execution.Request{Language: "python", Code: code} }

func within(r execution.Request, seconds float64) execution.Request {
	r.Limits.TimeoutSeconds = seconds
	return r
}

// shown is what a client shows of a program.
type shown struct {
	// failed: the client takes it for a failure. text is all that it shows as
	// text.
	failed bool
	text   string
	// images are those of figures, html what is meant to be rendered.
	images, html []string
}

// run runs a program through a door. output, if not nil, is called when some of
// the program's output has reached the client while it runs.
type run func(t *testing.T, r execution.Request, output func()) shown

// hostile are programs that fail or misbehave, and what every door must show.
var hostile = []struct {
	name    string
	request execution.Request
	failed  bool
	words   []string
}{
	{"out of memory", python("print('before', flush=True)\nx = []\nwhile True: x.append(bytearray(1 << 20))"), true, []string{"before", "memory"}},
	{"time limit", within(python("import time\nprint('before', flush=True)\ntime.sleep(60)"), 1), true, []string{"before", "time limit"}},
	{"100 MB of output", python("for _ in range(100): print('x' * (1 << 20))"), true, []string{"xxxx", "more output than it may", "incomplete", "left out"}},
	{"output that is cut", python("for i in range(1 << 18): print(f'{i:8}')"), true, []string{"       0\n", "  262143", "incomplete", "left out"}},
	{"segmentation fault", python("import ctypes\nprint('before', flush=True)\nctypes.string_at(0)"), true, []string{"before", "SIGSEGV"}},
	{"fork bomb", within(python("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"), 2), true, []string{"time limit"}},
	{"bytes that are not UTF-8", python("import os\nos.write(1, b'a\\xff\\xfeb\\n')"), false, []string{"a\uFFFD"}},
	{"exit code", python("print('before')\nraise SystemExit(3)"), true, []string{"before", "exit code 3"}},
}

func testHostile(t *testing.T, run run) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, test.request, nil)
			if got.failed != test.failed {
				t.Errorf("failed: %t", got.failed)
			}
			for _, word := range test.words {
				if !strings.Contains(got.text, word) {
					t.Errorf("the client does not show %q, but %.300q … %.300q", word, got.text, got.text[max(0, len(got.text)-300):])
				}
			}
		})
	}
	t.Run("figure", func(t *testing.T) {
		got := run(t, python("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"), nil)
		if got.failed || len(got.images) != 1 || !strings.HasPrefix(got.images[0], "\x89PNG") {
			t.Errorf("%t: %d images: %.200s", got.failed, len(got.images), got.text)
		}
	})
	t.Run("table with a script", func(t *testing.T) {
		const script = "<script>alert(1)</script>"
		got := run(t, python("class T:\n    def _repr_html_(self): return '<table><tr><td>7</td></tr></table>"+script+"'\n    def __repr__(self): return 'a table with 7'\nT()"), nil)
		if got.failed || len(got.html) != 1 || !strings.Contains(got.html[0], script) {
			t.Errorf("%t: HTML %q", got.failed, got.html)
		}
		if strings.Contains(got.text, "<script>") || !strings.Contains(got.text, "a table with 7") {
			t.Errorf("the text is %q", got.text)
		}
	})
	t.Run("killed sandbox", func(t *testing.T) {
		kill := sync.OnceFunc(func() { killSandboxes(t, shared) })
		got := run(t, python("import time\nprint('before', flush=True)\ntime.sleep(60)"), kill)
		if !got.failed || !strings.Contains(got.text, "before") || !strings.Contains(got.text, "sandbox ended before it reported") {
			t.Errorf("%t: %q", got.failed, got.text)
		}
	})
	t.Run("no sandbox", func(t *testing.T) {
		release := occupy(t, shared, 2)
		defer release()
		got := run(t, python("print('never')"), nil)
		if !got.failed || strings.Contains(got.text, "never") || !strings.Contains(got.text, "in use") || !strings.Contains(got.text, "again in") {
			t.Errorf("%t: %q", got.failed, got.text)
		}
	})
}

// killSandboxes kills the sandboxes that run programs.
func killSandboxes(t *testing.T, p *product.Product) {
	for _, name := range claimed(t, p) {
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

func claimed(t *testing.T, p *product.Product) []string {
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
	ctx, cancel := contextOf(t)
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			_, _ = p.StreamTo(ctx, within(python("import time\ntime.sleep(300)"), 300), nil)
		})
	}
	product.Eventually(t, patience, "all sandboxes are in use", func() bool { return len(claimed(t, p)) == n })
	return func() {
		cancel()
		running.Wait()
		product.Eventually(t, patience, "the sandboxes are free", func() bool { return len(claimed(t, p)) == 0 })
	}
}
