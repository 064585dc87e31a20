package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/preheat-dev/preheat/tests/cluster/netns"
)

// daemon is a program that outlives the process that starts it. A file says
// which process it is, with when that began: ids are used again.
type daemon struct {
	name string
	file string
	log  string
}

func (n *Node) daemon(name string) daemon {
	return daemon{name: name, file: filepath.Join(n.run, name+".pid"), log: n.Log(name)}
}

// start starts a program unless it runs.
func (n *Node) start(name, program string, args ...string) error {
	return n.startIn(n.Namespace(), name, program, args...)
}

// startIn starts a program in a network namespace, or in this one.
func (n *Node) startIn(namespace, name, program string, args ...string) error {
	d := n.daemon(name)
	if d.alive() {
		return nil
	}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.state, log, log
	// Temporary folders that a program leaves go with the node. To collect
	// garbage at Go's usual pace takes the API server a quarter of its time.
	cmd.Env = append(os.Environ(), "PATH="+n.bin.node+":"+os.Getenv("PATH"), "TMPDIR="+n.temp(), "GOGC=300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := cmd.Start
	if namespace != "" {
		start = func() error { return netns.Do(namespace, cmd.Start) }
	}
	if err := start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	began, err := startTime(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("%s ended at once: %w", name, d.failure())
	}
	return os.WriteFile(d.file, fmt.Appendf(nil, "%d %s\n", cmd.Process.Pid, began), 0o644)
}

// pid returns the daemon's process, or 0.
func (d daemon) pid() int {
	data, err := os.ReadFile(d.file)
	if err != nil {
		return 0
	}
	id, began, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	pid, err := strconv.Atoi(id)
	if err != nil || pid <= 1 {
		return 0
	}
	if now, err := startTime(pid); err != nil || now != began {
		return 0
	}
	return pid
}

func (d daemon) alive() bool { return d.pid() != 0 }

// stop ends the daemon and waits until it is gone.
func (d daemon) stop(ctx context.Context, grace time.Duration) error {
	defer os.Remove(d.file)
	signal, deadline := syscall.SIGTERM, time.Now().Add(grace)
	for sent := false; ; {
		pid := d.pid()
		if pid == 0 {
			return nil
		}
		if !sent || time.Now().After(deadline) {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stop %s: %w", d.name, err)
			}
			sent, signal, deadline = true, syscall.SIGKILL, deadline.Add(grace)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop %s: %w", d.name, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// failure describes a daemon that ended, with the end of its log.
func (d daemon) failure() error {
	log, err := os.ReadFile(d.log)
	return errors.Join(fmt.Errorf("the end of %s:\n%s", d.log, log[max(0, len(log)-3000):]), err)
}

// startTime is when a process began, in clock ticks since the machine did. One
// that has ended and was not waited for counts as gone.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field, a name in brackets, may hold anything.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("the status of process %d is not as expected", pid)
	}
	if fields[0] == "Z" {
		return "", os.ErrProcessDone
	}
	return fields[19], nil
}
