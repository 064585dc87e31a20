package runc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

func TestSafeVersionsOfRunc(t *testing.T) {
	for version, want := range map[string]bool{
		"1.2.7": false, "1.2.8": true, "1.3.2": false, "1.3.3": true, "1.3.3-rc.1": false, "1.4.0-rc.1": false, "1.4.0-rc.3+dev": false,
		"1.4.0": true, "1.5.3": true, "2.0.0": true, "0.9.0": false, "1.1.15": false, "1.4.0+ds1": true, "": false, "unknown": false,
	} {
		if got := isSafe(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}

// A sandbox gets no swap where the kernel can say so.
func TestNoSwap(t *testing.T) {
	c := Config{StateDir: "/run/x", Limits: SandboxLimits{Memory: 512 << 20, CPUs: 1}}
	for _, limited := range []bool{true, false} {
		s, err := c.Spec(Host{Root: true, Cgroups: true, SwapLimit: limited}, Image{}, local.PoolConfig{}, "s", 0)
		if err != nil {
			t.Fatal(err)
		}
		m := s.Linux.Resources.Memory
		if *m.Limit != 512<<20 || (m.Swap != nil) != limited || limited && *m.Swap != *m.Limit {
			t.Errorf("swap can be limited: %v; memory %d, swap %v", limited, *m.Limit, m.Swap)
		}
	}
}

func TestStateFolderIsResolved(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, link := range []struct{ to, name string }{{dir, "here"}, {"/", "root"}} {
		if err := os.Symlink(link.to, link.name); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"state", dir + "/state/", "here/state", "./here//state/../state"} {
		if got, err := makeStateDir(path); err != nil || got != filepath.Join(dir, "state") {
			t.Errorf("%s became %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"/", "root", "//", "/.."} {
		if got, err := makeStateDir(path); err == nil {
			t.Errorf("%s became %q", path, got)
		}
	}
}

// A state folder that is a mount of its own, such as a tmpfs, outlives the
// removal of what is mounted in it.
func TestSweepLeavesTheStateFolderMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir, err := makeStateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	within := filepath.Join(dir, "within")
	for _, path := range []string{dir, within} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=64k"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	}
	if err := unmountBelow(dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dir: true, within: false} {
		if mounted, err := mountinfo.Mounted(path); err != nil || mounted != want {
			t.Errorf("%s is mounted: %v, %v", path, mounted, err)
		}
	}
}

// TestCheckRunc: what says nothing of its version is no runc.
func TestCheckRunc(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runc")
	for said, want := range map[string]bool{
		"runc version 1.5.3\nspec: 1.3.0": true, "runc version 1.4.0-rc.1\nspec: 1.2.1": false, "crun version 1.19": false, "": false,
	} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\nprintf '"+said+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := CheckRunc(t.Context(), path); (err == nil) != want || err != nil && !errors.Is(err, ErrRunc) {
			t.Errorf("%q: %v", said, err)
		}
	}
	if err := CheckRunc(t.Context(), path+"-absent"); !errors.Is(err, ErrRunc) {
		t.Errorf("a runc that is not there: %v", err)
	}
}
