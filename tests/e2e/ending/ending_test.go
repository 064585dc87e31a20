// Package ending tests, on real sandboxes, that how a program ended is told
// truly, and that nothing of it is left: the rows E1 to E14 of
// docs/results.md.
package ending

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=4", "PREHEAT_JAVASCRIPT_POOL_SIZE=1", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

func python(code string) execution.Request {
	return execution.Request{Language: "python", Code: code}
}

func bash(code string) execution.Request { return execution.Request{Language: "bash", Code: code} }

func javascript(code string) execution.Request {
	return execution.Request{Language: "javascript", Code: code}
}

func within(r execution.Request, seconds float64) execution.Request {
	r.Limits.TimeoutSeconds = seconds
	return r
}

func TestE1ExitCodes(t *testing.T) {
	t.Parallel()
	const divided = `Traceback (most recent call last):
  File "/work/main.py", line 4, in <module>
    f(0)
    ~^^^
  File "/work/main.py", line 2, in f
    return 1 / x
           ~~^~~
ZeroDivisionError: division by zero
`
	const syntax = `  File "/work/main.py", line 1
    def f(:
          ^
SyntaxError: invalid syntax
`
	tests := []struct {
		name     string
		request  execution.Request
		exitCode int
		stderr   string
	}{
		{"sys.exit(3)", python("import sys; sys.exit(3)"), 3, ""},
		{"sys.exit(msg)", python(`import sys; sys.exit("msg")`), 1, "msg\n"},
		{"SystemExit", python("raise SystemExit"), 0, ""},
		{"os._exit(7)", python("import os; os._exit(7)"), 7, ""},
		{"uncaught exception", python("def f(x):\n    return 1 / x\n\nf(0)"), 1, divided},
		{"SyntaxError", python("def f(:"), 1, syntax},
		{"exit code beyond a byte", python("import sys; sys.exit(256 + 4)"), 4, ""},
		{"bash exit", bash("exit 3"), 3, ""},
		{"bash last command", bash("false"), 1, ""},
		{"bash exec", bash("exec python3 -c 'import sys; sys.exit(9)'"), 9, ""},
		{"bash trap", bash("trap 'echo bye >&2' EXIT; exit 5"), 5, "bye\n"},
		{"node process.exit", javascript("setTimeout(() => process.exit(6), 1)"), 6, ""},
		{"node exitCode", javascript("process.exitCode = 8"), 8, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, tt.request)
			status := execution.StatusFailed
			if tt.exitCode == 0 {
				status = execution.StatusSucceeded
			}
			product.Ended(t, r, status, tt.exitCode, "")
			product.Wrote(t, r, "", tt.stderr)
		})
	}
}

// TestE1NodeFailures: errors that nothing catches fail the program.
func TestE1NodeFailures(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"uncaught":             `throw new Error("boom")`,
		"uncaught later":       `setTimeout(() => { throw new Error("boom") }, 1)`,
		"unhandled rejection":  `Promise.reject(new Error("boom")); setInterval(() => {}, 1000)`,
		"rejection in an ESM":  `import "node:fs"; await Promise.reject(new Error("boom"))`,
		"rejection in a timer": `setTimeout(async () => { throw new Error("boom") }, 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, javascript(code))
			product.Ended(t, r, execution.StatusFailed, 1, "")
			if !strings.Contains(r.Stderr, "Error: boom") || strings.Contains(r.Stderr, "preheat") {
				t.Errorf("stderr is %s", r.Stderr)
			}
		})
	}
}

func TestE2Signals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		request  execution.Request
		exitCode int
		signal   string
	}{
		{"kill by SIGSEGV", python("import os; os.kill(os.getpid(), 11)"), 139, "SIGSEGV"},
		{"null pointer", python("import ctypes; ctypes.string_at(0)"), 139, "SIGSEGV"},
		{"abort", python("import os; os.abort()"), 134, "SIGABRT"},
		{"SIGKILL by itself", python("import os; os.kill(os.getpid(), 9)"), 137, "SIGKILL"},
		{"SIGTERM", bash("kill -TERM $$"), 143, "SIGTERM"},
		{"real-time signal", bash("kill -40 $$"), 168, "signal 40"},
		{"broken pipe", python("import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL); r, w = os.pipe(); os.close(r); os.write(w, b'x')"), 141, "SIGPIPE"},
		{"node", javascript("process.kill(process.pid, 'SIGSEGV'); setTimeout(() => {}, 9000)"), 139, "SIGSEGV"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			product.Ended(t, shared.Execute(t, tt.request), execution.StatusFailed, tt.exitCode, tt.signal)
		})
	}
}

// timedOut checks a program that ran into a limit of so many seconds. The
// upper bound is far beyond what the limit is about: it is for loaded machines.
func timedOut(t *testing.T, r execution.Result, seconds float64) {
	t.Helper()
	product.Ended(t, r, execution.StatusTimedOut, 137, "SIGKILL")
	if r.Usage.WallMS < seconds*1000 || r.Usage.WallMS > seconds*1000+20_000 {
		t.Errorf("it ran for %v ms", r.Usage.WallMS)
	}
}

func TestE3Timeout(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]execution.Request{
		"python":  python("print('line', flush=True)\nwhile True: pass"),
		"ignores": python("import signal, time\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\nprint('line', flush=True)\nwhile True: time.sleep(1)"),
		"bash":    bash("echo line; sleep 1000"),
		"node":    javascript("console.log('line'); while (true);"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, within(request, 1))
			timedOut(t, r, 1)
			product.Wrote(t, r, "line\n", "")
		})
	}
}

func TestE6StoppedProcesses(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]execution.Request{
		"its group":    python("import os, signal\nprint('line', flush=True)\nos.kill(0, signal.SIGSTOP)"),
		"itself":       bash("echo line; kill -STOP $$"),
		"with a child": python("import os, signal\nprint('line', flush=True)\nif os.fork() == 0: os.setsid()\nos.kill(os.getpid(), signal.SIGSTOP)"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, within(request, 0.5))
			timedOut(t, r, 0.5)
			product.Wrote(t, r, "line\n", "")
		})
	}
}

func TestE11InputWithoutStdin(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, python("input()"))
	product.Ended(t, r, execution.StatusFailed, 1, "")
	if !strings.HasSuffix(r.Stderr, "EOFError: EOF when reading a line\n") {
		t.Errorf("stderr is %q", r.Stderr)
	}
}

// TestE13 looks at the document itself: no field is left out for being zero.
func TestE13EveryField(t *testing.T) {
	t.Parallel()
	_, body := shared.Post(t, "/v1/sandbox/execute", python("pass"))
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"stdout": `""`, "stderr": `""`, "exit_code": "0", "status": `"succeeded"`, "signal": "null",
		"stdout_base64": "null", "stderr_base64": "null", "results": "[]", "artifacts": "[]", "notes": "[]",
	} {
		product.Equal(t, name, string(fields[name]), want)
	}
	for _, name := range []string{"sandbox_name", "truncated", "usage", "timings_ms"} {
		if len(fields[name]) < 3 {
			t.Errorf("%s is %s", name, fields[name])
		}
	}
	if !strings.HasPrefix(string(body), `{"stdout":"","stderr":"","exit_code":0,"sandbox_name":`) {
		t.Errorf("the four names that came first are not first in %.100s", body)
	}
}
