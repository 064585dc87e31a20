package runner

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// prlimits are the numbers of prlimit64, which alone sets another process's
// limits, in every ABI that a processor of this kind may offer.
func prlimits() []uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return []uint32{302, 302 | 1<<30, 340} // x86-64, x32, i386
	case "arm64":
		return []uint32{261, 369} // arm64, arm
	}
	return nil
}

// seal keeps programs from setting this process's limits, which their common
// user would allow them: with RLIMIT_CPU at zero the kernel kills the runner
// before it can report. A filter that is installed now holds for all processes
// that are started later (seccomp(2)); everything else stays allowed by it.
func seal() error {
	const (
		runner  = 1                 // PID
		number  = 0                 // in struct seccomp_data, in bytes
		pid     = 16                // the low half of the first argument
		limit   = 16 + 2*8          // the third, a pointer to the new limit or null
		deny    = 0x00050000 | 0x01 // SECCOMP_RET_ERRNO, EPERM
		allow   = 0x7fff0000        // SECCOMP_RET_ALLOW
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		ifEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ret     = unix.BPF_RET | unix.BPF_K
	)
	numbers := prlimits()
	filter := []unix.SockFilter{{Code: load, K: number}}
	for i, n := range numbers {
		filter = append(filter, unix.SockFilter{Code: ifEqual, K: n, Jt: uint8(len(numbers) - i)})
	}
	filter = append(filter, []unix.SockFilter{
		{Code: ret, K: allow},
		{Code: load, K: pid}, {Code: ifEqual, K: runner, Jf: 4},
		{Code: load, K: limit}, {Code: ifEqual, K: 0, Jf: 3},
		{Code: load, K: limit + 4}, {Code: ifEqual, K: 0, Jf: 1},
		{Code: ret, K: allow}, {Code: ret, K: deny},
	}...)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// All threads of this process get it, since any of them starts processes.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("sealing the runner: %w", errno)
	}
	return nil
}
