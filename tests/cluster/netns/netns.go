// Package netns does things inside named network namespaces without changing
// what else a program sees: `ip netns exec` would hide the control groups.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netns"
)

// Exists reports whether there is a namespace.
func Exists(name string) bool {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return false
	}
	_ = ns.Close()
	return true
}

// Add makes a namespace in which nothing leads out.
func Add(name string) error {
	return onThread(func() error {
		ns, err := netns.NewNamed(name)
		if err == nil {
			err = ns.Close()
		}
		if err != nil {
			return fmt.Errorf("make the network namespace %s: %w", name, err)
		}
		return nil
	})
}

// Delete removes a namespace's name. It ends with its last process.
func Delete(name string) error {
	if err := netns.DeleteNamed(name); err != nil {
		return fmt.Errorf("delete the network namespace %s: %w", name, err)
	}
	return nil
}

// IP runs ip(8) inside.
func IP(ctx context.Context, name string, args ...string) error {
	args = append([]string{"-n", name}, args...)
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}

// Do calls f on a thread that is inside. What f starts stays inside; other
// goroutines are not.
func Do(name string, f func() error) error {
	return onThread(func() error {
		if err := Join(name); err != nil {
			return err
		}
		return f()
	})
}

// onThread calls f on a thread that ends with it.
func onThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		// Not unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

// Join moves the calling thread inside, for good.
func Join(name string) error {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open the network namespace %s: %w", name, err)
	}
	if err := errors.Join(netns.Set(ns), ns.Close()); err != nil {
		return fmt.Errorf("enter the network namespace %s: %w", name, err)
	}
	return nil
}
