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
func (b *Backend) sweep(ctx context.Context) error {
	left, err := b.runtime.containers(b.runc.Root)
	if err != nil {
		return fmt.Errorf("sweeping: %w", err)
	}
	for _, name := range left {
		// A container that cannot be deleted this way is taken apart below.
		_ = b.runc.Delete(ctx, name, &gorunc.DeleteOpts{Force: true})
	}
	stateDir := b.config.StateDir
	if b.host.Cgroups {
		ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
		defer cancel()
		if err := removeCgroups(ctx, stateDir, b.host); err != nil {
			return fmt.Errorf("sweeping cgroups: %w", err)
		}
	}
	if err := unmountBelow(stateDir); err != nil {
		return fmt.Errorf("sweeping mounts: %w", err)
	}
	for _, dir := range []string{b.runc.Root, bundleRoot(stateDir)} {
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
