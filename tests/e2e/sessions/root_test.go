// Package sessions runs programs of several cells in the interpreters of the
// sandbox image, and speaks to their harness as the runner does.
package sessions

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// rootVariable names the folder that becomes the interpreters' root. It is set in
// the process that has namespaces of its own.
const rootVariable = "PREHEAT_TEST_ROOT"

func TestMain(m *testing.M) {
	code, err := inNamespace(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// inNamespace runs the tests in a process whose mounts and processes end with it.
func inNamespace(m *testing.M) (code int, err error) {
	if root := os.Getenv(rootVariable); root != "" {
		if err := mountRoot(root); err != nil {
			return 1, err
		}
		return m.Run(), nil
	}
	root, err := os.MkdirTemp("", "preheat-sessions-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.Remove(root)) }()
	self := exec.Command("/proc/self/exe", os.Args[1:]...)
	self.Env = append(os.Environ(), rootVariable+"="+root)
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	self.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: unix.SIGKILL}
	var ended *exec.ExitError
	switch err := self.Run(); {
	case errors.As(err, &ended):
		return max(ended.ExitCode(), 1), nil
	case err != nil:
		return 1, fmt.Errorf("making namespaces (it needs root): %w", err)
	}
	return 0, nil
}

// mountRoot puts the sandbox's root file system together, as a sandbox has it.
func mountRoot(root string) error {
	build, err := filepath.Abs("../../../build")
	if err != nil {
		return err
	}
	sandbox, err := filepath.EvalSymlinks(filepath.Join(build, "sandbox"))
	if err != nil {
		return fmt.Errorf("finding the sandbox image (make build makes it): %w", err)
	}
	harness, err := filepath.Abs("../../../functions/runner/harness")
	if err != nil {
		return err
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"none", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{filepath.Join(sandbox, "rootfs"), root, "", unix.MS_BIND, ""},
		{"none", root, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""},
		{harness, root + "/opt/preheat", "", unix.MS_BIND, ""},
		{"none", root + "/opt/preheat", "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""},
		{"proc", root + "/proc", "proc", 0, ""},
		{"/dev", root + "/dev", "", unix.MS_BIND | unix.MS_REC, ""},
		{"tmpfs", root + "/tmp", "tmpfs", 0, "mode=1777"},
		{"tmpfs", root + "/work", "tmpfs", 0, "mode=0777"},
		{"tmpfs", root + "/home/sandbox", "tmpfs", 0, "mode=0777"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	return nil
}
