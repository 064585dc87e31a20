package runner

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// call is a system call as a filter sees it, for bpf.VM, which loads words in
// network order where the kernel loads them in the processor's.
func call(arch, number uint32, args ...uint64) []byte {
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArg0+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArg0+8*i+4:], uint32(a>>32))
	}
	return data
}

func TestSelfOnly(t *testing.T) {
	const pointer = 0x7fff_0000_0000
	amd64, arm64 := abis["amd64"], abis["arm64"]
	for _, test := range []struct {
		name  string
		abis  []abi
		data  []byte
		allow bool
	}{
		{"read", amd64, call(unix.AUDIT_ARCH_X86_64, 0, 3, pointer, 10), true},
		{"setrlimit, which is prlimit64 of oneself", amd64, call(unix.AUDIT_ARCH_X86_64, 302, 0, 0, pointer, 0), true},
		{"limits of process 1", amd64, call(unix.AUDIT_ARCH_X86_64, 302, 1, 0, pointer, 0), false},
		{"limits of a thread of it", amd64, call(unix.AUDIT_ARCH_X86_64, 302, 7, 0, pointer, 0), false},
		{"limits at an address with a low half of zero", amd64, call(unix.AUDIT_ARCH_X86_64, 302, 7, 0, 1<<32, 0), false},
		{"a process id with a high half", amd64, call(unix.AUDIT_ARCH_X86_64, 302, 1<<32|1, 0, pointer, 0), false},
		{"reading the limits of process 1", amd64, call(unix.AUDIT_ARCH_X86_64, 302, 1, 0, 0, pointer), true},
		{"limits by x32", amd64, call(unix.AUDIT_ARCH_X86_64, 302|1<<30, 1, 0, pointer, 0), false},
		{"limits by i386", amd64, call(unix.AUDIT_ARCH_I386, 340, 1, 0, 0x1000, 0), false},
		{"the number that i386 has for another call", amd64, call(unix.AUDIT_ARCH_X86_64, 340, 1, 0, 0x1000, 0), true},
		{"the number that x86-64 has for another call", amd64, call(unix.AUDIT_ARCH_I386, 302, 1, 0, 0x1000, 0), true},
		{"one's own scheduling class", amd64, call(unix.AUDIT_ARCH_X86_64, 144, 0, 5, pointer), true},
		{"the scheduling class of a thread", amd64, call(unix.AUDIT_ARCH_X86_64, 144, 5, 5, pointer), false},
		{"scheduling parameters of a thread", amd64, call(unix.AUDIT_ARCH_X86_64, 142, 5, pointer), false},
		{"attributes of a thread", amd64, call(unix.AUDIT_ARCH_X86_64, 314, 5, pointer, 0), false},
		{"one's own processors", amd64, call(unix.AUDIT_ARCH_X86_64, 203, 0, 8, pointer), true},
		{"processors of a thread", amd64, call(unix.AUDIT_ARCH_X86_64, 203, 2, 8, pointer), false},
		{"nice", amd64, call(unix.AUDIT_ARCH_X86_64, 141, 0, 0, 19), true},
		{"nice for a thread", amd64, call(unix.AUDIT_ARCH_X86_64, 141, 0, 3, 19), false},
		{"nice for one's group", amd64, call(unix.AUDIT_ARCH_X86_64, 141, 1, 0, 19), false},
		{"nice for one's user", amd64, call(unix.AUDIT_ARCH_X86_64, 141, 2, 0, 19), false},
		{"one's own I/O priority", amd64, call(unix.AUDIT_ARCH_X86_64, 251, 1, 0, 3<<13), true},
		{"I/O priority of a thread", amd64, call(unix.AUDIT_ARCH_X86_64, 251, 1, 2, 3<<13), false},
		{"I/O priority of one's user", amd64, call(unix.AUDIT_ARCH_X86_64, 251, 3, 0, 3<<13), false},
		{"an interface that is not known", amd64, call(unix.AUDIT_ARCH_S390X, 1), false},
		{"arm64: limits of a thread", arm64, call(unix.AUDIT_ARCH_AARCH64, 261, 5, 0, pointer, 0), false},
		{"arm64: one's own limits", arm64, call(unix.AUDIT_ARCH_AARCH64, 261, 0, 0, pointer, 0), true},
		{"arm: limits of a thread", arm64, call(unix.AUDIT_ARCH_ARM, 369, 5, 0, 0x1000, 0), false},
		{"arm64: nice for a thread", arm64, call(unix.AUDIT_ARCH_AARCH64, 140, 0, 3, 19), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			vm, err := bpf.NewVM(selfOnly(test.abis))
			if err != nil {
				t.Fatal(err)
			}
			got, err := vm.Run(test.data)
			if err != nil {
				t.Fatal(err)
			}
			want := uint32(retDeny)
			if test.allow {
				want = retAllow
			}
			if uint32(got) != want {
				t.Errorf("the filter returns %#x, not %#x", got, want)
			}
		})
	}
}

func TestFiltersFitTheKernel(t *testing.T) {
	for arch, known := range abis {
		code, err := bpf.Assemble(selfOnly(known))
		if err != nil {
			t.Errorf("%s: %v", arch, err)
		}
		if len(code) > 4096 {
			t.Errorf("%s: %d instructions", arch, len(code))
		}
		for _, a := range known {
			if n := len(a.rules()); n > 255 {
				t.Errorf("%s: a jump over %d instructions", arch, n)
			}
		}
	}
}
