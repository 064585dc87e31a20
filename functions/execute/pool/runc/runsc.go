package runc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	gorunc "github.com/containerd/go-runc"
	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// runsc is gVisor's runtime. A sandbox is two processes of the host, its kernel
// (the sentry) and one that opens files for it, and below the sentry those in
// which it lets programs run. The program's processes are not the host's: what
// bounds them and what is seen of them is the sentry's.
type runsc struct{}

// runscOverhead is what a sentry takes beside its programs.
const runscOverhead = 64 << 20

func (runsc) name() Runtime { return Runsc }

// ErrRunsc says that the runsc binary cannot be used.
var ErrRunsc = errors.New("unusable runsc")

func (runsc) check(ctx context.Context, binary string, h Host) error {
	text, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return fmt.Errorf("%w: %w (`make gvisor` builds it)", ErrRunsc, err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if !strings.HasPrefix(first, "runsc version ") {
		return fmt.Errorf("%w: %s is something else, of version %.100q", ErrRunsc, binary, first)
	}
	if !h.Root || !h.Cgroups {
		return fmt.Errorf("%w: it needs root and cgroups", ErrRunsc)
	}
	return nil
}

func (runsc) flags() []string {
	return []string{
		"--platform=systrap",
		// Nothing but loopback, in the sentry's own network stack.
		"--network=none",
		// The root file system is read-only, and its folder belongs to all sandboxes.
		"--overlay2=none",
		"--oci-seccomp",
	}
}

func (runsc) overhead() int64 { return runscOverhead }

func (runsc) tellsApart() bool { return false }

// adapt leaves to the sentry what the host cannot see.
func (r runsc) adapt(s *ocispec.Spec, l SandboxLimits) {
	processes := uint64(l.Processes)
	s.Process.Rlimits = append(s.Process.Rlimits, ocispec.POSIXRlimit{Type: "RLIMIT_NPROC", Soft: processes, Hard: processes})
	// For each process of a program the sentry has one of its own, with a thread
	// for each of its processors and two more.
	const own, each = 256, 4
	most := own + each*l.Processes
	s.Linux.Resources.Pids.Limit = &most
	answerAbsent(s.Linux.Seccomp)
	// It would be the sentry's own, in which there is nothing to read.
	s.Mounts = slices.DeleteFunc(s.Mounts, func(m ocispec.Mount) bool { return m.Type == "cgroup" })
}

// answerAbsent lets calls fail with ENOSYS where the filter says so: with EPERM
// the C library would not try another call, clone in place of clone3. runsc knows
// no other error than EPERM, but a call that is left to a tracer fails with ENOSYS
// where there is no tracer (seccomp(2), SECCOMP_RET_TRACE), and there can be none:
// the filter refuses ptrace.
func answerAbsent(filter *ocispec.LinuxSeccomp) {
	for i := range filter.Syscalls {
		s := &filter.Syscalls[i]
		if s.Action == ocispec.ActErrno && s.ErrnoRet != nil && *s.ErrnoRet == uint(unix.ENOSYS) {
			s.Action, s.ErrnoRet = ocispec.ActTrace, nil
		}
	}
}

// connection is the standard input: runsc has no --preserve-fds, without which
// go-runc passes no other descriptor.
func (runsc) connection() int { return 0 }

func (runsc) create(pidFile string, log, conn *os.File) *gorunc.CreateOpts {
	return &gorunc.CreateOpts{Detach: true, PidFile: pidFile, IO: toFile{log: log, stdin: conn}}
}

// containers finds files such as NAME_sandbox:NAME.state.
func (runsc) containers(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "*_sandbox:*.state"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		name, _, _ := strings.Cut(filepath.Base(f), "_sandbox:")
		names = append(names, name)
	}
	return names, nil
}
