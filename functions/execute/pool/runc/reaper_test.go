package runc

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOrphans(t *testing.T) {
	a, b, again := process{10, "1"}, process{11, "2"}, process{10, "3"}
	set := func(list ...process) map[process]bool {
		m := map[process]bool{}
		for _, p := range list {
			m[p] = true
		}
		return m
	}
	for _, test := range []struct {
		name        string
		before, now map[process]bool
		runners     map[int]bool
		want        map[process]bool
	}{
		{"it has just ended", nil, set(a), nil, set()},
		{"it is still there", set(a, b), set(a), nil, set(a)},
		{"a container waits for it", set(a, b), set(a, b), map[int]bool{10: true}, set(b)},
		{"another one with its number", set(a), set(again), nil, set()},
		{"somebody has waited for it", set(a), nil, nil, set()},
	} {
		if got := orphans(test.before, test.now, test.runners); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// orphan makes a process whose parent is gone and that has ended.
func orphan(t *testing.T) int {
	t.Helper()
	if err := adoptOrphans(); err != nil {
		t.Fatal(err)
	}
	open, until, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "cat <&3 >/dev/null 2>&1 & echo $!")
	cmd.ExtraFiles = []*os.File{open}
	out, err := cmd.Output() // its shell has ended, cat has not
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(open.Close(), until.Close()); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	// It returns when the process has ended, and leaves it as it is.
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	return pid
}

// What a runc that was killed has left does not stay a process of the server.
func TestReaper(t *testing.T) {
	var r reaper
	left, runner := orphan(t), orphan(t)
	r.keep(runner)
	for range 3 {
		r.pass()
	}
	if state, _ := stat(left); state != "" {
		t.Errorf("the orphan is in state %q", state)
	}
	if state, _ := stat(runner); state != "Z" {
		t.Errorf("the runner, for which its container waits, is in state %q", state)
	}
	if pid, err := unix.Wait4(runner, nil, unix.WNOHANG, nil); pid != runner || err != nil {
		t.Errorf("waiting for the runner: %d, %v", pid, err)
	}
	r.forget(runner)
	if state, _ := stat(1); state == "" {
		t.Error("the first process has no state")
	}
}
