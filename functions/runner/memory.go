package runner

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/preheat-dev/preheat/functions/runner/oom"
)

// memoryEvents are those of the sandbox's memory cgroup: memory.events on
// cgroup v2, memory.oom_control on v1 (Linux, admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst). It is nil where the sandbox cannot see its cgroup.
type memoryEvents struct {
	// file stays open: to open it takes longer than to read it.
	file *os.File
}

// openMemoryEvents finds the events. root is where the cgroup file systems are
// mounted.
func openMemoryEvents(root string) *memoryEvents {
	for _, path := range []string{"memory.events", "memory/memory.oom_control"} {
		f, err := os.Open(filepath.Join(root, path))
		if err != nil {
			continue
		}
		m := &memoryEvents{f}
		if _, ok := m.read(); ok {
			return m
		}
		m.close()
	}
	return nil
}

// oomKills is the number of processes that the kernel has killed in this
// sandbox for memory, or 0 if that cannot be seen.
func (m *memoryEvents) oomKills() int64 {
	if m == nil {
		return 0
	}
	n, _ := m.read()
	return n
}

func (m *memoryEvents) read() (int64, bool) {
	text := make([]byte, 4<<10) // more than either file has
	n, err := m.file.ReadAt(text, 0)
	if err != nil && err != io.EOF {
		return 0, false
	}
	return oom.Kills(string(text[:n]))
}

func (m *memoryEvents) close() {
	if m != nil {
		_ = m.file.Close()
	}
}

// oomPreference makes the kernel kill programs, before the runner, when the
// sandbox's memory is used up. A process inherits its parent's score: it must
// be high before a program is started, since one that has been started may
// have children that would then be spared for its sake.
type oomPreference struct {
	file *os.File // nil where the score cannot be changed
	own  []byte
}

const (
	oomScoreFirst = "1000" // the highest there is
	// oomScoreLast is the runner's own, where it may have that. A program may
	// give itself what the runner may: with a higher one the runner would be
	// killed in its place.
	oomScoreLast = 0
)

func newOOMPreference() *oomPreference {
	// It stays open: see PR_SET_DUMPABLE, after which it could not be opened.
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return &oomPreference{}
	}
	o := &oomPreference{file: f}
	score, err := o.read()
	if err == nil && score > oomScoreLast {
		o.set([]byte(strconv.Itoa(oomScoreLast)))
		score, err = o.read()
	}
	if err != nil {
		o.close()
		return &oomPreference{}
	}
	o.own = []byte(strconv.Itoa(score))
	return o
}

func (o *oomPreference) read() (int, error) {
	text := make([]byte, 16)
	n, err := o.file.ReadAt(text, 0)
	if n == 0 && err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text[:n])))
}

// prefer gives the processes that are started from now on the highest score.
func (o *oomPreference) prefer() { o.set([]byte(oomScoreFirst)) }

// reset gives the runner its own score again.
func (o *oomPreference) reset() { o.set(o.own) }

func (o *oomPreference) set(score []byte) {
	if o.file != nil {
		// It may fail: the runner is small and not the first choice anyway.
		_, _ = o.file.WriteAt(score, 0)
	}
}

func (o *oomPreference) close() {
	if o.file != nil {
		_ = o.file.Close()
	}
}
