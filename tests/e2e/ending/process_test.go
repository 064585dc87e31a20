package ending

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// kill ends a process of this machine.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("killing process %d: %v", pid, err)
	}
}

// parentOf is the parent of a process.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Error(err)
		return -1
	}
	var state string
	var parent int
	// The name in parentheses may have spaces in it (proc(5)).
	_, after, _ := strings.Cut(string(stat), ") ")
	if _, err := fmt.Sscan(after, &state, &parent); err != nil {
		t.Error(err)
		return -1
	}
	return parent
}
