package runc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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
	if err := checkOwner(path, os.Geteuid()); err != nil {
		return "", fmt.Errorf("PREHEAT_STATE_DIR: %w", err)
	}
	return path, nil
}

// checkOwner refuses a folder that anyone but the user and root could have put
// files in, or could put another folder in the place of. The path is absolute and
// has no symbolic links.
func checkOwner(path string, user int) error {
	const others = 0o022
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		// In a sticky folder, such as /tmp, only its owner replaces an entry.
		writable := info.Mode().Perm()&others != 0 && (dir == path || info.Mode()&fs.ModeSticky == 0)
		switch {
		case owner != user && (dir == path || owner != 0):
			return fmt.Errorf("%s belongs to user %d, not to user %d, who runs this server: choose another folder", dir, owner, user)
		case writable:
			return fmt.Errorf("%s can be written by other users (mode %#o): choose another folder, or run chmod go-w %[1]s", dir, info.Mode().Perm())
		case dir == "/":
			return nil
		}
	}
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
	f, err := os.OpenFile(lockFile(stateDir), os.O_RDWR|os.O_CREATE, 0o600)
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
