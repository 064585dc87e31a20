package runner

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, seccomp(2). Only the low halves of arguments
// are loaded, unless both count: the kernel takes process ids as int.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg1   = 24
	offArg2   = 32
)

// What a filter returns for a call.
const (
	retAllow = 0x7fff0000                      // SECCOMP_RET_ALLOW
	retDeny  = 0x00050000 | uint32(unix.EPERM) // SECCOMP_RET_ERRNO
)

// abi is a system call interface of a processor. Its numbers mean something
// else in another one, so that the filter looks at arch first.
type abi struct {
	arch uint32
	// pidFirst are calls whose first argument is a process id.
	pidFirst []uint32
	// whoFirst are setpriority and ioprio_set, with the value of the first
	// argument that makes the second one a process id.
	whoFirst map[uint32]uint32
	// prlimit is prlimit64.
	prlimit []uint32
}

// abis are those of a kind of processor, by GOARCH.
var abis = map[string][]abi{
	"amd64": {
		{ // x86-64, and x32 with bit 30
			arch:     unix.AUDIT_ARCH_X86_64,
			pidFirst: []uint32{142, 144, 203, 314, 142 | 1<<30, 144 | 1<<30, 203 | 1<<30, 314 | 1<<30},
			whoFirst: map[uint32]uint32{141: 0, 251: 1, 141 | 1<<30: 0, 251 | 1<<30: 1},
			prlimit:  []uint32{302, 302 | 1<<30},
		},
		{arch: unix.AUDIT_ARCH_I386, pidFirst: []uint32{154, 156, 241, 351}, whoFirst: map[uint32]uint32{97: 0, 289: 1}, prlimit: []uint32{340}},
	},
	"arm64": {
		{arch: unix.AUDIT_ARCH_AARCH64, pidFirst: []uint32{118, 119, 122, 274}, whoFirst: map[uint32]uint32{140: 0, 30: 1}, prlimit: []uint32{261}},
		{arch: unix.AUDIT_ARCH_ARM, pidFirst: []uint32{154, 156, 241, 380}, whoFirst: map[uint32]uint32{97: 0, 314: 1}, prlimit: []uint32{369}},
	},
}

// installSeccomp keeps programs from setting this process's limits, priority and
// processors, which their common user would allow them: with RLIMIT_CPU at zero
// the kernel kills the runner before it can report, and with SCHED_IDLE it does
// not get to its timer. Any thread's id stands for the process there, so a
// program may change itself alone, which it names by 0. The filter holds for all
// processes that are started later (seccomp(2)) and allows everything else.
func installSeccomp() error {
	known, ok := abis[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("no system call numbers are known for %s", runtime.GOARCH)
	}
	code, err := bpf.Assemble(selfOnly(known))
	if err != nil {
		return fmt.Errorf("assembling the filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(code))
	for i, c := range code {
		filter[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// All threads of this process get it, since any of them starts processes.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("installing the filter: %w", errno)
	}
	return nil
}

// selfOnly is the filter for a processor. Calls of an interface that it does not
// know are refused.
func selfOnly(known []abi) []bpf.Instruction {
	var filter []bpf.Instruction
	for _, a := range known {
		body := a.rules()
		filter = append(filter, bpf.LoadAbsolute{Off: offArch, Size: 4})
		filter = append(filter, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: a.arch, SkipTrue: uint8(len(body))})
		filter = append(filter, body...)
	}
	return append(filter, bpf.RetConstant{Val: retDeny})
}

func (a abi) rules() []bpf.Instruction {
	var body []bpf.Instruction
	on := func(number uint32, check ...bpf.Instruction) {
		check = append(check, bpf.RetConstant{Val: retAllow}, bpf.RetConstant{Val: retDeny})
		body = append(body, bpf.LoadAbsolute{Off: offNumber, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(check))})
		body = append(body, check...)
	}
	for _, number := range a.pidFirst {
		on(number, bpf.LoadAbsolute{Off: offArg0, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1})
	}
	for number, which := range a.whoFirst {
		on(number,
			bpf.LoadAbsolute{Off: offArg0, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: which, SkipTrue: 3},
			bpf.LoadAbsolute{Off: offArg1, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1})
	}
	for _, number := range a.prlimit {
		// Limits may be read of every process: the new one is null then.
		on(number,
			bpf.LoadAbsolute{Off: offArg0, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 4},
			bpf.LoadAbsolute{Off: offArg2, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
			bpf.LoadAbsolute{Off: offArg2 + 4, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1})
	}
	return append(body, bpf.RetConstant{Val: retAllow})
}
