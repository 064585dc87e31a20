package runner

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asInit runs body as process 1 of a namespace of its own, as the runner is in
// its sandbox: the test starts once more there.
func asInit(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if os.Getpid() == 1 {
		body(t)
		return
	}
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=2m")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as process 1: %v\n%s", err, out)
	}
}

// started is a process that writes to a pipe.
type started struct {
	pid    int
	end    <-chan exit
	stdout *os.File
}

// startShell starts a shell with a script.
func startShell(t *testing.T, p *processes, script string) started {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	t.Cleanup(func() { _ = r.Close() })
	pid, end, err := p.Start("/bin/bash", []string{"bash", "-c", script}, os.Environ(), "/", []uintptr{null.Fd(), w.Fd(), 2})
	if err != nil {
		t.Fatal(err)
	}
	return started{pid, end, r}
}

// output waits for the end of what it writes.
func (s started) output(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(s.stdout)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// line waits until it has written want.
func (s started) line(t *testing.T, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(s.stdout, got); err != nil || string(got) != want {
		t.Fatalf("it wrote %q, not %q: %v", got, want, err)
	}
}

// alone reports whether there is no process but this one.
func alone() error {
	if err := unix.Kill(-1, 0); err != unix.ESRCH {
		return fmt.Errorf("there are other processes: %w", err)
	}
	return nil
}

// statusField is a field of the text of /proc/PID/status.
func statusField(t *testing.T, text, field string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no field %s in %q", field, text)
	return ""
}
