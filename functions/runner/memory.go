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
