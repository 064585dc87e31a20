package runner

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Two pipes are two queues, and nothing in them says which was written to
// first. The kernel does: a pipe with O_ASYNC sends a signal for each write to
// it, real-time signals queue in the order in which they are sent, and each
// names its pipe (fcntl(2), F_SETSIG). With O_DIRECT, a write to a pipe is read
// as it was written (pipe(2)), so that one signal stands for one write.
//
// A write that has to wait for room sends another signal before it waits (Linux,
// fs/pipe.c, pipe_write). A pipe with as many writes outstanding as it has places
// is full: a signal beyond them stands for no write.
//
// The order is exact with five exceptions: a write of more than a page that had to
// wait for room in its pipe; one whose other signal was late, since the kernel
// unlocks the pipe before it sends that; a write of a multiple of 4,096 bytes; one
// to a pipe that the program opened anew (/dev/stdout), which loses O_DIRECT; and
// more writes at once than the user may have signals pending. What is behind them
// may come early, until the reader has caught up.

const (
	// writeSignal says that a pipe was written to.
	writeSignal = 40
	// pollIn is the si_code of such a signal (sigaction(2), POLL_IN). The
	// signals of other processes have negative ones.
	pollIn = 1
	// pipeBytes is the capacity of a program's pipes, in which each write takes
	// a page at least. All of them have fewer writes than signals may pend.
	pipeBytes = 256 << 10
	// ownerThread is F_OWNER_TID of fcntl(2).
	ownerThread = 0
	// packet is the most that is read at once of a longer write.
	packet = 4096
)

// arrivals follows pipes in the order in which they were written to. It has a
// thread of its own, which the signals go to.
type arrivals struct {
	tid     int
	signals int // a signalfd, or -1 where the kernel has no signals for pipes
	wake    int // an eventfd
	jobs    chan func()
	ended   chan struct{}
	buf     []byte
	// accepted are signals that stand for writes, of which the first are done with.
	accepted []unix.SignalfdSiginfo
	done     int
}

// newArrivals starts the thread. close ends it.
func newArrivals() (*arrivals, error) {
	a := &arrivals{signals: -1, jobs: make(chan func()), ended: make(chan struct{}), buf: make([]byte, 64<<10)}
	ready := make(chan error)
	go func() {
		defer close(a.ended)
		// Not unlocked: the thread, whose signals are blocked, ends with it.
		runtime.LockOSThread()
		ready <- a.open()
		for job := range a.jobs {
			job()
		}
	}()
	if err := <-ready; err != nil {
		a.close()
		return nil, fmt.Errorf("following pipes: %w", err)
	}
	return a, nil
}

func (a *arrivals) open() (err error) {
	a.tid = unix.Gettid()
	if a.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	var set unix.Sigset_t
	for _, s := range []uint{writeSignal, uint(unix.SIGIO)} {
		set.Val[(s-1)/64] |= 1 << ((s - 1) % 64)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		return fmt.Errorf("blocking signals: %w", err)
	}
	if fd, err := unix.Signalfd(-1, &set, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK); err == nil {
		a.signals = fd
	}
	return nil
}

// close ends the thread.
func (a *arrivals) close() {
	close(a.jobs)
	<-a.ended
	_ = unix.Close(a.wake)
	if a.signals >= 0 {
		_ = unix.Close(a.signals)
	}
}

// pipe makes a pipe that can be followed, and returns our end, from which
// reads do not block, and the program's.
func (a *arrivals) pipe() (ours, theirs int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_DIRECT); err != nil {
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return 0, 0, fmt.Errorf("making a pipe: %w", err)
		}
	}
	// Without it there is less room.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeBytes)
	if err := a.listen(fds[0]); err != nil {
		return 0, 0, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return fds[0], fds[1], nil
}

// listen has writes to the pipe that fd reads sent to the thread.
func (a *arrivals) listen(fd int) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	if a.signals < 0 {
		return nil
	}
	owner := struct{ kind, id int32 }{ownerThread, int32(a.tid)}
	_, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
	if errno != 0 {
		return os.NewSyscallError("F_SETOWN_EX", errno)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETSIG, writeSignal); err != nil {
		return os.NewSyscallError("F_SETSIG", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK|unix.O_ASYNC); err != nil {
		return os.NewSyscallError("F_SETFL", err)
	}
	return nil
}

// forget drops the signals of pipes that are read no more.
func (a *arrivals) forget() {
	done := make(chan struct{})
	a.jobs <- func() {
		defer close(done)
		for len(a.pending()) > 0 {
		}
	}
	<-done
}

// source is a pipe that is followed.
type source struct {
	fd int
	// take is called with what was written to it, in the order of arrival. The
	// slice is valid during the call.
	take  func([]byte)
	ended bool
	// places is how many writes the pipe has room for, outstanding how many
	// signals stand for writes that have not been read.
	places, outstanding int
}

// follow reads sources in the order in which they are written to, until all
// have ended or stop is called, and then what is still in them. It calls idle
// whenever there is nothing more to read for the moment.
func (a *arrivals) follow(sources []*source, idle func()) (done <-chan struct{}) {
	ended := make(chan struct{})
	for _, s := range sources {
		// Where this is not known, every signal stands for a write.
		size, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETPIPE_SZ, 0)
		if s.places = size / os.Getpagesize(); err != nil || s.places < 1 {
			s.places = math.MaxInt
		}
	}
	a.jobs <- func() {
		defer close(ended)
		a.read(sources, idle)
	}
	return ended
}

// stop has follow read what is there, and end. The writers have ended.
func (a *arrivals) stop() {
	_, _ = unix.Write(a.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (a *arrivals) read(sources []*source, idle func()) {
	for {
		stopped := a.await(sources)
		a.readPending(sources, idle)
		if stopped {
			readAll(sources, a.buf)
			idle()
			var count [8]byte
			_, _ = unix.Read(a.wake, count[:])
			return
		}
		idle()
	}
}

// await waits for writes, or stop, of which it returns whether it was called.
func (a *arrivals) await(sources []*source) (stopped bool) {
	fds := []unix.PollFd{{Fd: int32(a.wake), Events: unix.POLLIN}}
	if a.signals >= 0 {
		fds = append(fds, unix.PollFd{Fd: int32(a.signals), Events: unix.POLLIN})
	} else {
		for _, s := range sources {
			if !s.ended {
				fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
			}
		}
	}
	for {
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			return err != nil || fds[0].Revents != 0
		}
	}
}

// readPending reads what the pending signals stand for.
func (a *arrivals) readPending(sources []*source, idle func()) {
	if a.signals < 0 {
		for _, s := range sources {
			s.readWrite(a.buf)
		}
		return
	}
	for n := 1; ; n++ {
		// Before each write that is read: whether a pipe is full changes with it.
		a.accept(sources)
		if a.done == len(a.accepted) {
			a.accepted, a.done = a.accepted[:0], 0
			return
		}
		info := a.accepted[a.done]
		a.done++
		if info.Signo == uint32(unix.SIGIO) {
			// More writes than signals may pend.
			readAll(sources, a.buf)
		} else if s := find(sources, info); s != nil {
			s.outstanding--
			s.readWrite(a.buf)
		}
		if n%flushAfter == 0 {
			idle()
		}
	}
}

// flushAfter is how many writes are read at most before they go on.
const flushAfter = 64

// batches bounds what accept takes at once: programs may send signals, too.
const batches = 16

// accept accepts those of the pending signals that stand for writes.
func (a *arrivals) accept(sources []*source) {
	for range batches {
		all := a.pending()
		for _, info := range all {
			s := find(sources, info)
			switch {
			case info.Signo == uint32(unix.SIGIO):
			case s == nil, s.outstanding == s.places:
				continue
			default:
				s.outstanding++
			}
			a.accepted = append(a.accepted, info)
		}
		if len(all) < batch {
			return
		}
	}
}

// find is the source of the pipe that a signal says was written to, or nil.
func find(sources []*source, info unix.SignalfdSiginfo) *source {
	if info.Code == pollIn {
		for _, s := range sources {
			if s.fd == int(info.Fd) {
				return s
			}
		}
	}
	return nil
}

// batch is how many signals are taken off the thread's queue at once.
const batch = 64

// pending takes signals off the thread's queue.
func (a *arrivals) pending() []unix.SignalfdSiginfo {
	var infos [batch]unix.SignalfdSiginfo
	const size = int(unsafe.Sizeof(infos[0]))
	n, err := unix.Read(a.signals, unsafe.Slice((*byte)(unsafe.Pointer(&infos)), size*len(infos)))
	if err != nil {
		return nil
	}
	return infos[:n/size]
}

// readAll reads all that is in the pipes.
func readAll(sources []*source, buf []byte) {
	for _, s := range sources {
		for s.readWrite(buf) {
		}
	}
}

// readWrite reads one write, and reports whether there may be more.
func (s *source) readWrite(buf []byte) bool {
	for !s.ended {
		n, err := unix.Read(s.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil, n == 0:
			s.ended = true
			return false
		}
		s.take(buf[:n])
		if n < packet {
			return true
		}
	}
	return false
}
