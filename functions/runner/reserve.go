package runner

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reserveSize is more than what the end of a run takes: the pieces on their
// way, and the names of the files in the working directory.
const reserveSize = 4 << 20 // bytes

// reserve is memory that is the runner's from the start. A program can leave
// the sandbox full: files in its tmpfs mounts count as memory and outlive it.
// The runner then frees this, so that it can still report the end.
type reserve []byte

func newReserve() (reserve, error) {
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
