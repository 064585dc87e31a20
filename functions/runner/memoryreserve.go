package runner

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memoryReserveSize is more than what the end of a run takes: the pieces on their
// way, and the names of the files in the working directory.
const memoryReserveSize = 4 << 20 // bytes

// memoryReserve is memory that is the runner's from the start. A program can leave
// the sandbox full: files in its tmpfs mounts count as memory and outlive it.
// The runner then frees this, so that it can still report the end. It is of
// huge pages where there are any: to free a thousand small ones takes most of
// a millisecond, on the way of every answer.
type memoryReserve []byte

const hugePage = 2 << 20 // bytes; where it is another size, small pages do

// spareThreads is more than the goroutines that can be in system calls at
// once: one for each pipe, the connection, the reaper, signals and the run.
const spareThreads = 16

func newMemoryReserve() (memoryReserve, error) {
	startThreads()
	r, err := unix.Mmap(-1, 0, memoryReserveSize+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("reserving memory: %w", err)
	}
	// The range has a page to spare, so that whole ones fit at their boundary.
	at := uintptr(unsafe.Pointer(unsafe.SliceData(r)))
	used := r[(hugePage-at%hugePage)%hugePage:][:memoryReserveSize]
	_ = unix.Madvise(used, unix.MADV_HUGEPAGE)
	for i := 0; i < len(used); i += os.Getpagesize() {
		used[i] = 1
	}
	return r, nil
}

func (r *memoryReserve) free() {
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
	for range spareThreads {
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
