package pooltest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// endless writes and then goes on for ever.
const endless = "import time\nprint('on', flush=True)\nwhile True: time.sleep(60)"

// I6, I7: what the program wrote arrives whole and in order after the start,
// and the outcome is the program's own.
func runs(t *testing.T, s suite) {
	h := s.claim(t)
	sink := newRecord()
	outcome, err := h.Run(t.Context(), program(`
import sys
for i in range(1000):
    print(i)
sys.stdout.flush()
sys.stdout.buffer.write(b"\xff\x00")
print("wrong", file=sys.stderr)
open("left.txt", "w").write("an artifact")
sys.exit(7)
`), sink)
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Status != execution.StatusFailed || outcome.ExitCode != 7 || outcome.Signal != "" {
		t.Errorf("the outcome is %+v", outcome)
	}
	lines := strings.Split(string(sink.out), "\n")
	if len(lines) != 1001 || lines[0] != "0" || lines[999] != "999" || lines[1000] != "\xff\x00" || string(sink.err) != "wrong\n" {
		t.Errorf("it wrote %d lines and %q", len(lines), sink.err)
	}
	if sink.started != 1 || sink.early {
		t.Errorf("the start was reported %d times, output before it: %v", sink.started, sink.early)
	}
	if len(sink.artifacts) != 1 || sink.artifacts[0].Path != "left.txt" || sink.artifacts[0].Content != "an artifact" {
		t.Errorf("the artifacts are %+v", sink.artifacts)
	}
}

// I8, I11: a program's time limit is a result, not an error.
func timesOut(t *testing.T, s suite) {
	run := program(endless)
	run.Limits.Timeout = 300 * time.Millisecond
	outcome, err := s.claim(t).Run(t.Context(), run, newRecord())
	if err != nil || outcome.Status != execution.StatusTimedOut {
		t.Errorf("the end is %+v, %v", outcome, err)
	}
}

// I1: the second run of a sandbox is refused, whatever the caller does.
func oneRun(t *testing.T, s suite) {
	h := s.claim(t)
	h.run(t, "print(1)")
	sink := newRecord()
	outcome, err := h.Run(t.Context(), program("print(2)"), sink)
	if err == nil || sink.started > 0 || len(sink.out) > 0 {
		t.Errorf("a second run ended with %+v, %v and wrote %q", outcome, err, sink.out)
	}
}

// I5: neither files nor processes nor shared memory of a run are there in the
// next one.
func nothingPasses(t *testing.T, s suite) {
	const leave = `
import os, subprocess
for folder in "/work", "/tmp", "/dev/shm", os.environ["HOME"]:
    open(folder + "/left-behind", "w").write("secret")
subprocess.Popen(["sleep", "3600"], start_new_session=True)
`
	const look = `
import os
for folder in "/work", "/tmp", "/dev/shm", os.environ["HOME"]:
    if os.path.exists(folder + "/left-behind"):
        print("file in", folder)
for pid in filter(str.isdigit, os.listdir("/proc")):
    if b"sleep" in open(f"/proc/{pid}/cmdline", "rb").read():
        print("process", pid)
`
	left := map[string]bool{}
	for range s.sizes.Max {
		h := s.claim(t)
		h.run(t, leave)
		left[h.Name()] = true
		h.Release()
	}
	for range s.sizes.Max {
		h := s.claim(t)
		if found := h.run(t, look); found != "" || left[h.Name()] {
			t.Errorf("sandbox %s, used before: %v, has %q", h.Name(), left[h.Name()], found)
		}
		h.Release()
	}
}

// I8: a run whose caller goes away ends its program. The outcome, if there
// still is one, says so.
func cancelledRun(t *testing.T, s suite) {
	h := s.claim(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, end := h.start(ctx, t, endless)
	cancel()
	e := receive(t, "the run", end)
	switch {
	case e.err == nil && e.outcome.Status != execution.StatusCancelled:
		t.Errorf("the outcome is %+v", e.outcome)
	case e.err != nil:
		check(t, e.err, context.Canceled)
	}
	h.Release()
	s.gone(t, h.Name())
}

// I6, I8: nothing runs for a caller who is gone already, and no success is
// reported.
func deadContext(t *testing.T, s suite) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	outcome, err := s.claim(t).Run(ctx, program("print(1)"), newRecord())
	if err == nil && outcome.Status != execution.StatusCancelled {
		t.Errorf("the outcome is %+v", outcome)
	}
}

// I6: the end of a sandbox under its program is an error of its own kind, and
// what the program wrote before has arrived.
func lost(t *testing.T, s suite) {
	h := s.claim(t)
	sink, end := h.start(t.Context(), t, endless)
	s.Kill(t, h.Name())
	check(t, receive(t, "the run", end).err, pool.ErrSandboxLost)
	if string(sink.out) != "on\n" {
		t.Errorf("the program's output is %q", sink.out)
	}
}

// I11: a run is refused for what is in it, and the refusal names the field.
func invalidRun(t *testing.T, s suite) {
	run := program("print(1)")
	run.Files = []pool.File{{Path: "a"}, {Path: "a/b"}} // a file and a folder
	sink := newRecord()
	_, err := s.claim(t).Run(t.Context(), run, sink)
	var invalid *pool.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(invalid.Error(), "files[1].path") {
		t.Errorf("the error is %v", err)
	}
	if sink.started > 0 {
		t.Error("the program was started")
	}
}

// I6: no program has more memory than it was given: a pool that cannot bound
// that of its sandboxes refuses the claim, and names the field.
func memoryLimit(t *testing.T, s suite) {
	const limit = 96 << 20
	claim := want()
	claim.Memory = limit
	sandbox, err := s.Pool.Claim(t.Context(), claim)
	var invalid *pool.InvalidError
	if errors.As(err, &invalid) {
		if invalid.Field != "limits.memory_bytes" {
			t.Errorf("the refusal names the field %q", invalid.Field)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	run := program("x = bytearray(200 << 20)\nprint('survived')")
	run.Limits.Memory = limit
	outcome, err := hold(t, sandbox).Run(t.Context(), run, newRecord())
	if err != nil || outcome.Status != execution.StatusOutOfMemory {
		t.Errorf("a program that took 200 MiB ended with %+v, %v", outcome, err)
	}
}
