package runner

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProcessEnds(t *testing.T) {
	asInit(t, func(t *testing.T) {
		p := newProcesses()
		defer p.Close()
		for script, want := range map[string]syscall.WaitStatus{
			"exit 0":          exited(0),
			"exit 3":          exited(3),
			"kill -SEGV $$":   signalled(unix.SIGSEGV),
			"kill -KILL $$":   signalled(unix.SIGKILL),
			"exec 1>&-; :":    exited(0),
			"sleep 60 & exit": exited(0),
		} {
			got := (<-startShell(t, p, script).end).status
			if got.ExitStatus() != want.ExitStatus() || got.Signaled() && got.Signal() != want.Signal() {
				t.Errorf("%s: wait status %#x, not %#x", script, got, want)
			}
		}
		for name, start := range map[string]func() (int, <-chan exit, error){
			"no such file":   func() (int, <-chan exit, error) { return p.Start("/no/such", []string{"x"}, nil, "/", nil) },
			"no such folder": func() (int, <-chan exit, error) { return p.Start("/bin/bash", []string{"x"}, nil, "/no/such", nil) },
			"a long argument": func() (int, <-chan exit, error) {
				return p.Start("/bin/bash", []string{strings.Repeat("x", 1<<20)}, nil, "/", nil)
			},
		} {
			if _, _, err := start(); err == nil {
				t.Errorf("%s: started", name)
			}
		}
	})
}

// TestKillAllLeavesNothing: whatever processes do, they are gone, those that
// nobody waits for included.
func TestKillAllLeavesNothing(t *testing.T) {
	asInit(t, func(t *testing.T) {
		p := newProcesses()
		p.KillAll() // nothing to kill
		var ends []<-chan exit
		for _, script := range []string{
			`trap '' TERM INT HUP; echo go; while :; do sleep 60; done`,
			`echo go; kill -STOP $$`,
			`(setsid sleep 60 &) ; (setsid bash -c 'setsid sleep 60 & sleep 60' &); echo go; exec sleep 60`,
			`f() { sleep 60 & }; echo go; for i in {1..40}; do f; done; wait`,
		} {
			s := startShell(t, p, script)
			s.line(t, "go\n")
			ends = append(ends, s.end)
		}
		p.KillAll()
		if err := alone(); err != nil {
			t.Error(err)
		}
		for _, end := range ends {
			if e := <-end; e.status.Signal() != unix.SIGKILL {
				t.Errorf("wait status %#x", e.status)
			}
		}
		if s := startShell(t, p, "exit 5"); (<-s.end).status.ExitStatus() != 5 {
			t.Error("no process can be started afterwards")
		}
		startShell(t, p, "exec sleep 60")
		p.Close()
		if err := alone(); err != nil {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestUsageSumsUp: the processor time of all, children included, and the memory
// of the largest, until it is reset.
func TestUsageSumsUp(t *testing.T) {
	asInit(t, func(t *testing.T) {
		p := newProcesses()
		defer p.Close()
		const busy = "for ((i = 0; i < 100000; i++)); do :; done; "
		<-startShell(t, p, busy).end
		once, rss := p.Usage()
		if once <= 0 || rss < 1<<20 {
			t.Errorf("%s and %d bytes", once, rss)
		}
		<-startShell(t, p, "("+busy+"); "+busy).end
		if both, _ := p.Usage(); both <= once {
			t.Errorf("%s after %s", both, once)
		}
		p.ResetUsage()
		if cpu, rss := p.Usage(); cpu != 0 || rss != 0 {
			t.Errorf("%s and %d bytes after a reset", cpu, rss)
		}
		s := startShell(t, p, busy+"echo go; exec sleep 60")
		s.line(t, "go\n")
		if cpuTime(s.pid) <= 0 {
			t.Error("a process that runs has used no processor time")
		}
		if cpuTime(1<<21) != 0 {
			t.Error("a process that is not there has used processor time")
		}
	})
}

// TestProgramsAreKilledFirst: when memory is used up, the kernel prefers
// programs to the runner, whose own score stays as low as it may be.
func TestProgramsAreKilledFirst(t *testing.T) {
	asInit(t, func(t *testing.T) {
		score := func() string {
			text, err := os.ReadFile("/proc/self/oom_score_adj")
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(text))
		}
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte("300"), 0); err != nil {
			t.Fatal(err)
		}
		p := newProcesses()
		defer p.Close()
		if got := score(); got != "0" {
			t.Errorf("the runner's score is %s", got)
		}
		s := startShell(t, p, "cat /proc/self/oom_score_adj")
		if got := s.output(t); got != "1000\n" {
			t.Errorf("a program's score is %q", got)
		}
		if got := score(); got != "0" {
			t.Errorf("the runner's score is %s afterwards", got)
		}
	})
}
