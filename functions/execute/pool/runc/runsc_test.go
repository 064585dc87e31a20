package runc

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

func TestCheckRunsc(t *testing.T) {
	able := Host{Root: true, Cgroups: true}
	path := filepath.Join(t.TempDir(), "runsc")
	for _, test := range []struct {
		says string
		host Host
		want string
	}{
		{"runsc version release-20260901.0", able, ""},
		{"runc version 1.4.0", able, "something else"},
		{"", able, "something else"},
		{"runsc version release-20260901.0", Host{}, "root and cgroups"},
		{"runsc version release-20260901.0", Host{Root: true}, "root and cgroups"},
	} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+test.says+"'\necho spec: 1.2.1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := runsc{}.check(t.Context(), path, test.host)
		if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrRunsc) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%q on %+v: %v", test.says, test.host, err)
		}
	}
	if err := (runsc{}).check(t.Context(), path+"-absent", able); !errors.Is(err, ErrRunsc) || !strings.Contains(err.Error(), "make gvisor") {
		t.Errorf("a runsc that is not there: %v", err)
	}
}

// What only the sentry can see is bounded by it, and its own part comes on top of
// the program's.
func TestSpecOfRunsc(t *testing.T) {
	c := Config{StateDir: "/s", Limits: SandboxLimits{Memory: 64 << 20, Tmpfs: 16 << 20, CPUs: 1, Processes: 32, OpenFiles: 64}}
	h := Host{Root: true, Cgroups: true, SwapLimit: true}
	specOf := func(r Runtime) *ocispec.Spec {
		c.Runtime = r
		s, err := c.Spec(h, Image{}, local.PoolConfig{}, "p-1", 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	usual, s := specOf(Runc), specOf(Runsc)
	if got := s.Process.Rlimits[len(s.Process.Rlimits)-1]; got != (ocispec.POSIXRlimit{Type: "RLIMIT_NPROC", Soft: 32, Hard: 32}) {
		t.Errorf("limit %+v", got)
	}
	if !slices.Contains(s.Process.Env, "PREHEAT_RUNNER_FD=0") || !slices.Contains(usual.Process.Env, "PREHEAT_RUNNER_FD=3") {
		t.Errorf("environment %q, and of runc %q", s.Process.Env, usual.Process.Env)
	}
	r := s.Linux.Resources
	if *r.Memory.Limit != 128<<20 || *r.Memory.Swap != 128<<20 || *r.Pids.Limit <= 3*32 {
		t.Errorf("memory %d, with swap %d, processes %d", *r.Memory.Limit, *r.Memory.Swap, *r.Pids.Limit)
	}
	for _, call := range s.Linux.Seccomp.Syscalls {
		if call.Action == ocispec.ActErrno && call.ErrnoRet != nil && *call.ErrnoRet != 1 {
			t.Errorf("runsc would answer EPERM, not error %d, to %v", *call.ErrnoRet, call.Names)
		}
	}
	traced := slices.ContainsFunc(s.Linux.Seccomp.Syscalls, func(c ocispec.LinuxSyscall) bool {
		return c.Action == ocispec.ActTrace && slices.Contains(c.Names, "clone3")
	})
	if !traced {
		t.Error("clone3 does not fail with ENOSYS")
	}
}

func TestContainersOfRunsc(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"python-a_sandbox:python-a.state", "python-a_sandbox:python-a.lock", "b_sandbox:b.state", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := (runsc{}).containers(dir); err != nil || !slices.Equal(got, []string{"b", "python-a"}) {
		t.Errorf("%q, %v", got, err)
	}
}
