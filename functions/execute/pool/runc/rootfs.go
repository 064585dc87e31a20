package runc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// roots makes a root file system for each sandbox: a read-only overlay over the
// image and a layer that all sandboxes have, with the runner and the devices.
//
// An overlay has inodes of its own. Without one, two sandboxes open the same
// inodes of the host, and a lock (flock(2)) that one of them takes on any file of
// the image, or on /dev/null, is there in the other: a message without a network.
type roots struct {
	// They are named to the kernel by descriptor: what is mounted in a sandbox
	// shows in its /proc/self/mountinfo, and paths of the host would, too.
	image, layer *os.File
}

// devices are those that a sandbox has.
var devices = map[string]struct{ major, minor uint32 }{
	"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0},
}

// openRoots makes the layer in the state folder and tries whether it can be
// mounted. The error says why this machine does not let it.
func openRoots(c Config, im Image) (*roots, error) {
	if err := passable(c.StateDir); err != nil {
		return nil, err
	}
	layer, try := filepath.Join(c.StateDir, "layer"), filepath.Join(bundleRoot(c.StateDir), "try")
	if err := makeLayer(layer, c.RunnerDir); err != nil {
		return nil, err
	}
	if err := hideDevices(filepath.Join(layer, "dev"), filepath.Join(im.Rootfs, "dev")); err != nil {
		return nil, err
	}
	var r roots
	var err error
	if r.layer, err = openPath(layer); err == nil {
		r.image, err = openPath(im.Rootfs)
	}
	if err == nil {
		err = os.Mkdir(try, 0o711)
	}
	if err == nil {
		err = errors.Join(r.mount(try), unmount(try), os.Remove(try))
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &r, nil
}

// mount mounts a root file system of its own at a folder.
func (r *roots) mount(target string) error {
	lower := fmt.Sprintf("lowerdir=/proc/self/fd/%d:/proc/self/fd/%d", r.layer.Fd(), r.image.Fd())
	if err := unix.Mount("overlay", target, "overlay", unix.MS_RDONLY|unix.MS_NOSUID, lower); err != nil {
		return fmt.Errorf("mounting an overlay: %w", err)
	}
	return nil
}

// unmount unmounts what is mounted at a folder, if anything is.
func unmount(target string) error {
	err := unix.Unmount(target, unix.MNT_DETACH)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("unmounting %s: %w", target, err)
}

func (r *roots) close() error {
	var problems []error
	for _, f := range []*os.File{r.image, r.layer} {
		if f != nil {
			problems = append(problems, f.Close())
		}
	}
	return errors.Join(problems...)
}

// openPath opens a folder so that it can be named, and no more.
func openPath(dir string) (*os.File, error) {
	return os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// makeLayer fills a folder with what the image does not have.
func makeLayer(dir, runnerDir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	dev, runner := filepath.Join(dir, "dev"), filepath.Join(dir, "opt", "preheat")
	for _, d := range []string{runner, filepath.Join(dev, "pts"), filepath.Join(dev, "shm")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := os.CopyFS(runner, os.DirFS(runnerDir)); err != nil {
		return fmt.Errorf("copying the runner: %w", err)
	}
	for name, d := range devices {
		path := filepath.Join(dev, name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("making the device %s: %w", name, err)
		}
		if err := os.Chmod(path, 0o666); err != nil { // whatever the umask
			return err
		}
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
}

// hideDevices hides what the image has in /dev and the layer has not, by a device
// of the number 0 (Linux, filesystems/overlayfs, whiteouts).
func hideDevices(layer, image string) error {
	entries, err := os.ReadDir(image)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		err := unix.Mknod(filepath.Join(layer, e.Name()), unix.S_IFCHR, 0)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("hiding the image's device %s: %w", e.Name(), err)
		}
	}
	return nil
}

// passable returns an error unless all users may pass through a folder and those
// above it: runc mounts a sandbox's file systems with the ids of the sandbox.
func passable(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("sandboxes cannot pass through %s, whose mode is %#o", dir, info.Mode().Perm())
		}
		if dir == "/" {
			return nil
		}
	}
}

// useRoot changes a sandbox's configuration to a root file system that was
// mounted for it. The runner and the devices are in it.
func useRoot(s *ocispec.Spec, rootfs string) {
	s.Root.Path = rootfs
	s.Mounts = slices.DeleteFunc(s.Mounts, func(m ocispec.Mount) bool { return m.Destination == "/opt/preheat" })
	for i := range s.Mounts {
		if m := &s.Mounts[i]; m.Destination == "/dev" {
			// runc makes no devices where /dev is a bind mount.
			m.Type, m.Source, m.Options = "bind", filepath.Join(rootfs, "dev"), []string{"bind", "ro", "nosuid", "noexec"}
		}
	}
}
