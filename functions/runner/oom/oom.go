// Package oom reads what the kernel says of processes that it killed for
// memory. The runner reads it inside a sandbox, the pool outside.
package oom

import (
	"strconv"
	"strings"
)

// Kills finds the oom_kill count in the text of a memory cgroup's
// memory.events (cgroup v2) or memory.oom_control (v1).
func Kills(text string) (n int64, ok bool) {
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
