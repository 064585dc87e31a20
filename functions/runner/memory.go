package runner

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills is the number of processes that the kernel has killed in this
// sandbox for memory, from the memory cgroup's events: memory.events on
// cgroup v2, memory.oom_control on v1 (Linux, admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst). root is where the cgroup file systems are mounted.
// It is -1 when the sandbox cannot see its cgroup.
func oomKills(root string) int64 {
	for _, file := range []string{"memory.events", "memory/memory.oom_control"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			continue
		}
		if n, ok := ParseOOMKills(string(text)); ok {
			return n
		}
	}
	return -1
}

// ParseOOMKills finds the oom_kill count in the text of a memory cgroup's
// memory.events or memory.oom_control.
func ParseOOMKills(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "oom_kill" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// oomPreference makes the kernel kill programs, before the runner, when the
// sandbox's memory is used up. A process inherits its parent's score: it must
// be high before a program is started, since one that has been started may
// have children that would then be spared for its sake.
type oomPreference struct {
	file *os.File // nil where the score cannot be changed
	own  []byte
}

const oomScoreFirst = "1000" // the highest there is

func newOOMPreference() *oomPreference {
	// It stays open: see PR_SET_DUMPABLE, after which it could not be opened.
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return &oomPreference{}
	}
	own := make([]byte, 16)
	n, err := f.ReadAt(own, 0)
	if n == 0 && err != nil {
		_ = f.Close()
		return &oomPreference{}
	}
	return &oomPreference{file: f, own: own[:n]}
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
