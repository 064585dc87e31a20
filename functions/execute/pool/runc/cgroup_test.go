package runc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// fakeCgroup is a folder with the files of a cgroup, and who is in it.
func fakeCgroup(t *testing.T, unified bool, procs string) cgroup {
	t.Helper()
	g := cgroup{path: "/preheat-x/p-1", host: Host{Cgroups: true, Unified: unified, SwapLimit: true, cgroups: t.TempDir()}}
	files := map[string]string{
		"memory/memory.limit_in_bytes": "", "memory/" + memorySwap: "", "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
		"cpu/cpu.shares": "", "freezer/freezer.state": "THAWED\n", "freezer/cgroup.procs": procs,
	}
	if unified {
		files = map[string]string{
			"memory.max": "", "memory.events": "low 0\noom 4\noom_kill 3\n", "cpu.weight": "", "cgroup.freeze": "0", "cgroup.events": "populated 1\nfrozen 1\n",
			"cgroup.kill": "", "cgroup.procs": procs,
		}
	}
	for name, text := range files {
		path := filepath.Join(g.dir(filepath.Dir(name)), filepath.Base(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func content(t *testing.T, g cgroup, controller, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir(controller), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCgroupFiles(t *testing.T) {
	for _, test := range []struct {
		unified bool
		want    map[[2]string]string
	}{
		{false, map[[2]string]string{{"memory", "memory.limit_in_bytes"}: "1048576", {"memory", memorySwap}: "1048576", {"cpu", "cpu.shares"}: "1024", {"freezer", "freezer.state"}: "FROZEN"}},
		{true, map[[2]string]string{{"", "memory.max"}: "1048576", {"", "cpu.weight"}: "100", {"", "cgroup.freeze"}: "1", {"", "cgroup.kill"}: "1"}},
	} {
		g := fakeCgroup(t, test.unified, "")
		if err := errors.Join(g.setMemory(1<<20), g.setShares(1024), g.setFrozen(true)); err != nil {
			t.Fatal(err)
		}
		g.kill()
		for file, want := range test.want {
			if got := content(t, g, file[0], file[1]); len(got) < len(want) || got[:len(want)] != want {
				t.Errorf("unified %v: %s has %q, not %q", test.unified, file, got, want)
			}
		}
		if n := g.oomKills(); n != 3 {
			t.Errorf("unified %v: %d processes were killed for memory", test.unified, n)
		}
	}
}

// A process that is listed but in another cgroup, such as one that got the
// number of one that has ended, is not killed; and the wait for it ends.
func TestProcessesOfOthersAreNotKilled(t *testing.T) {
	for _, unified := range []bool{false, true} {
		me := strconv.Itoa(os.Getpid())
		g := fakeCgroup(t, unified, "1\n"+me+"\n")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := g.killAllBut(ctx, 1); !errors.Is(err, errAlive) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("unified %v: %v", unified, err)
		}
		if err := g.empty(over()); !errors.Is(err, errAlive) {
			t.Errorf("unified %v: %v", unified, err)
		}
		file, want := "freezer.state", "THAWED"
		if unified {
			file, want = "cgroup.freeze", "0"
		}
		if got := content(t, g, "freezer", file); got[:len(want)] != want {
			t.Errorf("unified %v: it is left %q", unified, got)
		}
	}
}

func TestEmptyCgroups(t *testing.T) {
	g := fakeCgroup(t, true, "17\n")
	if some, err := g.killAllBut(t.Context(), 17); some || err != nil {
		t.Errorf("%v, %v", some, err)
	}
	if err := (cgroup{path: "/none", host: g.host}).empty(t.Context()); err != nil {
		t.Error(err)
	}
	if err := (cgroup{}).empty(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMemoryOfAllSandboxes(t *testing.T) {
	for unified, file := range map[bool]string{false: "memory.limit_in_bytes", true: "memory.max"} {
		g := fakeCgroup(t, unified, "")
		g.path = cgroupParent("/state")
		if err := limitTogether("/state", g.host, 1<<30); err == nil {
			t.Errorf("unified %v: a limit that is not there was set", unified)
		}
		if err := os.WriteFile(filepath.Join(g.dir("memory"), file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := limitTogether("/state", g.host, 1<<30); err != nil {
			t.Error(err)
		}
		if got := content(t, g, "memory", file); got != "1073741824" {
			t.Errorf("unified %v: the limit is %q", unified, got)
		}
	}
}
