package runc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	gorunc "github.com/containerd/go-runc"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

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
		ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
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
