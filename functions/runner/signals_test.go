package runner

import (
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSignalsOfProgramsAreIgnored: no signal of a program's ends the runner,
// and programs start with the default of all of them.
func TestSignalsOfProgramsAreIgnored(t *testing.T) {
	asInit(t, func(t *testing.T) {
		signal.Notify(make(chan os.Signal, 1), unix.SIGTERM) // as the command does
		p := newProcesses()
		defer p.Close()
		if err := p.Protect(); err != nil {
			t.Fatal(err)
		}
		s := startShell(t, p, `for s in {1..64}; do for i in 1 2 3; do kill -$s 1 2>/dev/null; done; done; echo sent; cat /proc/self/status`)
		s.line(t, "sent\n")
		text := s.output(t)
		for _, field := range []string{"SigBlk", "SigIgn"} {
			if got := statusField(t, text, field); got != "0000000000000000" {
				t.Errorf("a program has %s %s", field, got)
			}
		}
		if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
			t.Errorf("the runner is dumpable: %d, %v", dumpable, err)
		}
	})
}

// TestSeccompHoldsForPrograms: a program may change its own limits and priority,
// and no other process's.
func TestSeccompHoldsForPrograms(t *testing.T) {
	asInit(t, func(t *testing.T) {
		if err := installSeccomp(); err != nil {
			t.Fatal(err)
		}
		p := newProcesses()
		defer p.Close()
		for script, want := range map[string]int{
			"ulimit -S -n 100 && ulimit -t 50":        0,
			"nice -n 5 true":                          0,
			"renice -n 5 -p 1 2>/dev/null":            1,
			"prlimit --pid 1 --cpu=0 2>/dev/null":     1,
			"prlimit --pid 1 >/dev/null":              0, // it may read them
			"taskset -p 1 1 >/dev/null 2>&1":          1,
			"chrt --idle -p 0 1 >/dev/null 2>&1":      1,
			"ionice -c 3 -p 1 >/dev/null 2>&1":        1,
			"chrt --batch 0 true":                     0,
			"for i in 1 2 3; do (ulimit -n 50); done": 0,
		} {
			if got := (<-startShell(t, p, script).end).status.ExitStatus(); got != want {
				t.Errorf("%s: %d, not %d", script, got, want)
			}
		}
	})
}
