package runner

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Handlers in the kernel's struct sigaction.
const (
	handlerDefault = 0
	handlerIgnore  = 1
)

const (
	lastSignal = unix.Signal(64)
	// From firstShared to lastShared signals are left to the C library by
	// the Go runtime, which therefore does not give them their default again
	// in the processes that it starts.
	firstShared = unix.Signal(32)
	lastShared  = unix.Signal(34)
)

// ignoreSignals has the kernel ignore the signals that the Go runtime has taken but
// does not need. Programs run as the same user and can send them: a flood of
// them, and those that look like a fault of the runner's own, which can be
// forged (rt_sigqueueinfo(2)), would end it. Leaving them to their default
// would not do, although a namespace's first process is safe from it: not
// while one of its threads blocks signals.
func ignoreSignals() error {
	for n := unix.Signal(1); n <= lastSignal; n++ {
		switch n {
		case unix.SIGKILL, unix.SIGSTOP: // nobody can change these
			continue
		case unix.SIGURG, unix.SIGCHLD, unix.SIGTERM: // needed, and harmless
			continue
		}
		handler, err := handlerOf(n)
		if err != nil {
			return err
		}
		if handler != handlerDefault {
			if err := handle(n, handlerIgnore); err != nil {
				return err
			}
		}
	}
	return handleShared(handlerIgnore)
}

func handleShared(handler uintptr) error {
	for n := firstShared; n <= lastShared; n++ {
		if err := handle(n, handler); err != nil {
			return err
		}
	}
	return nil
}

// sigaction is large enough for the kernel's on every architecture; its first
// word is the handler, and all others zero will do.
type sigaction [8]uintptr

// signalSetSize is the size of the kernel's sigset_t.
const signalSetSize = 8

func handlerOf(n unix.Signal) (uintptr, error) {
	var old sigaction
	_, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&old)), signalSetSize, 0, 0)
	if err != 0 {
		return 0, fmt.Errorf("looking up the handler of signal %d: %w", n, err)
	}
	return old[0], nil
}

func handle(n unix.Signal, handler uintptr) error {
	now := sigaction{handler}
	_, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&now)), 0, signalSetSize, 0, 0)
	if err != 0 {
		return fmt.Errorf("setting the handler of signal %d: %w", n, err)
	}
	return nil
}
