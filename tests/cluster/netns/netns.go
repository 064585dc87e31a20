// Package netns makes named network namespaces and does things inside them,
// without changing what else a program sees: `ip netns exec` would hide the
// control groups.
package netns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

const dir = "/run/netns"

// Path is where a namespace is mounted.
func Path(name string) string { return filepath.Join(dir, name) }

// Exists reports whether there is a namespace.
func Exists(name string) bool {
	_, err := os.Stat(Path(name))
	return err == nil
}

// Add makes a namespace in which nothing leads out.
func Add(ctx context.Context, name string) error { return ip(ctx, "netns", "add", name) }

// Delete removes a namespace's name. It ends with its last process.
func Delete(ctx context.Context, name string) error { return ip(ctx, "netns", "delete", name) }

// IP runs ip(8) inside.
func IP(ctx context.Context, name string, args ...string) error {
	return ip(ctx, append([]string{"-n", name}, args...)...)
}

func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}

// Do calls f on a thread that is inside. What f starts stays inside; other
// goroutines are not.
func Do(name string, f func() error) error {
	result := make(chan error, 1)
	go func() {
		// Not unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		result <- enter(name, f)
	}()
	return <-result
}

func enter(name string, f func() error) error {
	if err := Join(name); err != nil {
		return err
	}
	return f()
}

// Join moves the calling thread inside, for good.
func Join(name string) error {
	ns, err := os.Open(Path(name))
	if err != nil {
		return fmt.Errorf("open the network namespace: %w", err)
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace %s: %w", name, err)
	}
	return nil
}
