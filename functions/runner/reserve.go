package runner

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// reserveSize is more than what the end of a run takes: the pieces on their
// way, and the names of the files in the working directory.
const reserveSize = 4 << 20 // bytes

// reserve is memory that is the runner's from the start. A program can leave
// the sandbox full: files in its tmpfs mounts count as memory and outlive it.
// The runner then frees this, so that it can still report the end.
type reserve []byte

// reserveThreads is more than the goroutines that can be in system calls at
// once: one for each pipe, the connection, the reaper, signals and the run.
const reserveThreads = 16

func newReserve() (reserve, error) {
	startThreads()
	r, err := unix.Mmap(-1, 0, reserveSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("reserving memory: %w", err)
	}
	return r, nil
}

func (r *reserve) free() {
	if *r != nil {
		_ = unix.Munmap(*r)
		*r = nil
	}
}

// startThreads makes the operating system's threads that this process may come
// to need. A program can use up the sandbox's number of processes, and the Go
// runtime ends a process that it cannot give a thread; it keeps those that it
// has.
func startThreads() {
	var started, ended sync.WaitGroup
	release := make(chan struct{})
	for range reserveThreads {
		started.Add(1)
		ended.Go(func() {
			// A locked goroutine has a thread to itself, also while it waits.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			<-release
		})
	}
	started.Wait()
	close(release)
	ended.Wait()
}
