package product

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// Equal reports what is not as it should be.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, not %s", what, quote(got), quote(want))
	}
}

// quote writes a value so that it can be told apart, and not too much of it.
func quote(v any) string {
	const most = 2000
	s, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(s) > most {
		return string(s[:most/2]) + "…" + string(s[len(s)-most/2:])
	}
	return string(s)
}

// Ended checks how a program ended, whose signal is "" if there is to be none.
func Ended(t testing.TB, r execution.Result, status execution.Status, exitCode int, signal string) {
	t.Helper()
	got := ""
	if r.Signal != nil {
		got = *r.Signal
	}
	Equal(t, "status", r.Status, status)
	Equal(t, "exit code", r.ExitCode, exitCode)
	Equal(t, "signal", got, signal)
	if t.Failed() {
		t.Logf("stdout: %s, stderr: %s, notes: %q", quote(r.Stdout), quote(r.Stderr), r.Notes)
	}
}

// Wrote checks everything that a program wrote.
func Wrote(t testing.TB, r execution.Result, stdout, stderr string) {
	t.Helper()
	Equal(t, "stdout", r.Stdout, stdout)
	Equal(t, "stderr", r.Stderr, stderr)
}

// Decode reads the data of an event.
func Decode[T any](t testing.TB, e Event) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(e.Data, &v); err != nil {
		t.Fatalf("event %s: %v in %s", e.Name, err, e.Data)
	}
	return v
}

// Exit returns the terminal event, which must be the last one and the only
// one of its kind.
func Exit(t testing.TB, events []Event) execution.Exit {
	t.Helper()
	count := 0
	for _, e := range events {
		if e.Name == execution.EventExit {
			count++
		}
	}
	if count != 1 || events[len(events)-1].Name != execution.EventExit {
		t.Fatalf("of %d events, %d are exits; the stream must end in one", len(events), count)
	}
	return Decode[execution.Exit](t, events[len(events)-1])
}

// InSandbox returns the processes of a sandbox, as this machine sees them.
func InSandbox(t testing.TB, sandbox string) []int {
	t.Helper()
	return processes(t, "cgroup", "/"+sandbox+"\n")
}

// Running returns the processes with an argument in their command line, of
// any sandbox and of none.
func Running(t testing.TB, argument string) []int {
	t.Helper()
	return processes(t, "cmdline", "\x00"+argument+"\x00")
}

// processes returns those whose file below /proc has a text in it.
func processes(t testing.TB, file, text string) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(content), text) {
			continue // it may have ended since
		}
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}
