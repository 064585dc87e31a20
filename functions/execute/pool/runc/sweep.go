package runc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	gorunc "github.com/containerd/go-runc"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// makeStateDir makes the state folder and returns where it really is: what is
// mounted below it is found by that path.
func makeStateDir(path string) (string, error) {
	err := os.MkdirAll(path, 0o711)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("making the state folder (PREHEAT_STATE_DIR): %w", err)
	}
	if path == "/" {
		return "", errors.New("PREHEAT_STATE_DIR must not be the root folder: all that is mounted below it would be unmounted")
	}
	return path, nil
}

// lock makes this process the only one that uses the state folder, until the
// returned file is closed or the process ends.
func lock(stateDir string) (*os.File, error) {
	for _, dir := range []string{runcRoot(stateDir), bundleRoot(stateDir)} {
		// Sandboxes pass through to their bundles with ids of their own.
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return nil, fmt.Errorf("making the state folder: %w", err)
		}
	}
	f, err := os.OpenFile(filepath.Join(stateDir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another server uses %s: stop it, or choose another PREHEAT_STATE_DIR", stateDir)
		}
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	return f, nil
}

// sweep removes what a process that was killed has left in the state folder:
// containers, mounts, cgroups and bundles. The caller holds the lock.
func sweep(ctx context.Context, runc *gorunc.Runc, stateDir string, h Host) error {
	left, err := os.ReadDir(runc.Root)
	if err != nil {
		return fmt.Errorf("sweeping: %w", err)
	}
	for _, e := range left {
		// A container that cannot be deleted this way is taken apart below.
		_ = runc.Delete(ctx, e.Name(), &gorunc.DeleteOpts{Force: true})
	}
	if h.Cgroups {
		ctx, cancel := context.WithTimeout(ctx, cgroupTimeout)
		defer cancel()
		if err := removeCgroups(ctx, stateDir, h); err != nil {
			return fmt.Errorf("sweeping cgroups: %w", err)
		}
	}
	if err := unmountBelow(stateDir); err != nil {
		return fmt.Errorf("sweeping mounts: %w", err)
	}
	for _, dir := range []string{runc.Root, bundleRoot(stateDir)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("sweeping: %w", err)
		}
		for _, e := range entries {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("sweeping: %w", err)
			}
		}
	}
	return nil
}

// unmountBelow unmounts what is mounted below dir. What is mounted at dir itself,
// such as a tmpfs of its own, is the caller's.
func unmountBelow(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if m.Mountpoint == dir {
			continue
		}
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("%s: %w", m.Mountpoint, err)
		}
	}
	return nil
}
