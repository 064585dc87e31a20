package runc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

func TestUseRoot(t *testing.T) {
	c := Config{StateDir: "/run/x", RunnerDir: "/opt/build/runner", Limits: SandboxLimits{Memory: 512 << 20, CPUs: 1}}
	s, err := c.Spec(Host{Root: true, Cgroups: true}, Image{Rootfs: "/var/cache/image/rootfs"}, local.PoolConfig{}, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	useRoot(s, "/run/x/bundles/s/rootfs")
	if s.Root.Path != "/run/x/bundles/s/rootfs" || !s.Root.Readonly {
		t.Errorf("the root is %+v", *s.Root)
	}
	find := func(path string) int {
		return slices.IndexFunc(s.Mounts, func(m ocispec.Mount) bool { return m.Destination == path })
	}
	if find("/opt/preheat") >= 0 {
		t.Error("the runner's folder is mounted")
	}
	dev := find("/dev")
	if m := s.Mounts[dev]; m.Type != "bind" || m.Source != "/run/x/bundles/s/rootfs/dev" || !slices.Contains(m.Options, "ro") {
		t.Errorf("/dev is %+v", m)
	}
	if find("/dev/pts") < dev || find("/dev/shm") < dev {
		t.Error("/dev hides what is mounted in it")
	}
}

// Each root file system has inodes of its own, the runner, and the devices of the
// layer and no others.
func TestRoots(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	image, runner, state := filepath.Join(dir, "image"), filepath.Join(dir, "runner"), filepath.Join(dir, "state")
	for path, text := range map[string]string{image + "/etc/passwd": "root", image + "/dev/console": "", image + "/dev/null": "", image + "/opt/preheat/x": "", runner + "/runner": "#!/bin/sh"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{bundleRoot(state) + "/a", bundleRoot(state) + "/b"} {
		if err := os.MkdirAll(path, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	r, err := openRoots(Config{StateDir: state, RunnerDir: runner}, Image{Rootfs: image})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(bundleRoot(state), name)
		if err := r.mount(path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(unmount(path), unmount(path)); err != nil {
				t.Error(err)
			}
		})
		var devices []string
		entries, err := os.ReadDir(path + "/dev")
		for _, e := range entries {
			devices = append(devices, e.Name())
		}
		if want := "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"; err != nil || strings.Join(devices, " ") != want {
			t.Errorf("devices %v, %v", devices, err)
		}
		if err := os.WriteFile(path+"/x", nil, 0o644); !errors.Is(err, unix.EROFS) {
			t.Errorf("writing to it: %v", err)
		}
		for _, file := range []string{"etc/passwd", "opt/preheat/runner", "dev/null"} {
			f, err := os.Open(filepath.Join(path, file))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
				t.Errorf("%s of %s is locked already: %v", file, name, err)
			}
		}
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := openRoots(Config{StateDir: state, RunnerDir: runner}, Image{Rootfs: image}); err == nil || !strings.Contains(err.Error(), "cannot pass through") {
		t.Errorf("a state folder that sandboxes cannot pass through: %v", err)
	}
}
