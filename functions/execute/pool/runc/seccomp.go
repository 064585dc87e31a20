package runc

import (
	"slices"

	ocispec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// tighten takes from Docker's default profile what programs in a sandbox have
// no use for, and what one of them could take from all the others: tracing other
// processes and reading their memory, asynchronous input and output by aio, whose
// contexts the machine counts together, inotify, whose instances are counted for
// root, and socket protocols other than TCP, UDP and ICMP. The system calls of
// other architectures go as well, which halves the time to make a sandbox.
func tighten(filter *ocispec.LinuxSeccomp) *ocispec.LinuxSeccomp {
	refused := []string{"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"}
	// Libraries do without these when the kernel does not have them.
	absent := []string{
		"inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
		"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents", "io_pgetevents_time64",
	}
	for i := range filter.Syscalls {
		s := &filter.Syscalls[i]
		s.Names = slices.DeleteFunc(s.Names, func(name string) bool {
			return slices.Contains(refused, name) || slices.Contains(absent, name)
		})
		if slices.Contains(s.Names, "socket") && s.Action == ocispec.ActAllow {
			s.Args = append(s.Args, plainProtocol())
		}
	}
	filter.Architectures = filter.Architectures[:min(1, len(filter.Architectures))]
	filter.Syscalls = slices.DeleteFunc(filter.Syscalls, func(s ocispec.LinuxSyscall) bool { return len(s.Names) == 0 })
	enosys := uint(unix.ENOSYS)
	filter.Syscalls = append(filter.Syscalls, ocispec.LinuxSyscall{Names: absent, Action: ocispec.ActErrno, ErrnoRet: &enosys})
	return filter
}

// plainProtocol is true of socket's third argument below 128: of TCP, UDP, ICMP
// and all protocols of netlink, but not of SCTP (132), UDP-Lite (136) and
// MPTCP (262).
func plainProtocol() ocispec.LinuxSeccompArg {
	const from, to = 1 << 7, 1 << 9
	return ocispec.LinuxSeccompArg{Index: 2, Value: to - from, ValueTwo: 0, Op: ocispec.OpMaskedEqual}
}
