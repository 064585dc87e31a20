package node

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func testNode(t *testing.T) *Node {
	t.Helper()
	dir := t.TempDir()
	n := New(Config{Name: "test"})
	n.state, n.run = filepath.Join(dir, "state"), filepath.Join(dir, "run")
	for _, d := range []string{n.run, filepath.Join(n.state, "logs")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestADaemonIsStartedOnceAndStopped(t *testing.T) {
	n := testNode(t)
	start := func() int {
		if err := n.startIn("", "sleeper", "sleep", "60"); err != nil {
			t.Fatal(err)
		}
		return n.daemon("sleeper").pid()
	}
	pid := start()
	if pid == 0 {
		t.Fatal("it does not run")
	}
	// The test is its parent, which has to take note of its end.
	ended := make(chan error, 1)
	go func() {
		_, err := syscall.Wait4(pid, nil, 0, nil)
		ended <- err
	}()
	if again := start(); again != pid {
		t.Errorf("it was started twice: %d and %d", pid, again)
	}
	if err := n.daemon("sleeper").stop(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n.daemon("sleeper").alive() {
		t.Error("it still runs")
	}
}

// A process id is used again: what has it now is not the daemon.
func TestADaemonIsNotWhoeverHasItsID(t *testing.T) {
	n := testNode(t)
	d := n.daemon("other")
	if err := os.WriteFile(d.file, fmt.Appendf(nil, "%d 1\n", os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	if d.alive() {
		t.Fatal("this test was taken for a daemon")
	}
	if err := d.stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestConfigure(t *testing.T) {
	n := testNode(t)
	n.config.Runc = "/usr/bin/runc"
	if err := n.configure(); err != nil {
		t.Fatal(err)
	}
	config := n.conf("kubelet.yaml")
	before, err := os.Stat(config)
	if err != nil {
		t.Fatal(err)
	}
	// kube-proxy ends when its file changes: the same content is not written.
	if err := n.configure(); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(config)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Error("an unchanged file was written again")
	}
}
