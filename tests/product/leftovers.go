package product

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Leftovers counts what a server has on the machine.
type Leftovers struct {
	Containers, Processes, Cgroups, Mounts, Bundles int
	// RSS is the server's memory in KiB and FDs its open files; 0 when it
	// does not run.
	RSS, FDs int
}

// Leftovers counts what the server has on the machine now.
func (p *Product) Leftovers(t testing.TB) Leftovers {
	t.Helper()
	bundles, err := os.ReadDir(filepath.Join(p.StateDir, "bundles"))
	if err != nil {
		t.Fatal(err)
	}
	left := Leftovers{
		Containers: len(p.Containers(t)), Processes: len(p.Processes(t)), Cgroups: len(p.Cgroups(t)),
		Mounts: p.mounts(t), Bundles: len(bundles),
	}
	proc := fmt.Sprintf("/proc/%d", p.Cmd.Process.Pid)
	if fds, err := os.ReadDir(filepath.Join(proc, "fd")); err == nil {
		left.FDs = len(fds)
	}
	if text, err := os.ReadFile(filepath.Join(proc, "status")); err == nil {
		for line := range strings.Lines(string(text)) {
			_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &left.RSS)
		}
	}
	return left
}

// GVisor reports whether the tests are for sandboxes of gVisor, as PREHEAT_RUNTIME says.
func GVisor() bool { return os.Getenv("PREHEAT_RUNTIME") == "runsc" }

// Containers are the containers that the runtime knows of.
func (p *Product) Containers(t testing.TB) []string {
	t.Helper()
	name := "runc"
	if GVisor() {
		name = "runsc"
	}
	runc := exec.Command(filepath.Join(Root(t), "build/bin", name), "--root", filepath.Join(p.StateDir, "runc"), "list", "--format", "json")
	out, err := runc.Output()
	if err != nil {
		t.Fatalf("runc list: %v", err)
	}
	var list []struct{ ID string }
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("runc list: %v in %s", err, out)
	}
	names := []string{}
	for _, c := range list {
		names = append(names, c.ID)
	}
	slices.Sort(names)
	return names
}

// Cgroups are the folders of the sandboxes' cgroups.
func (p *Product) Cgroups(t testing.TB) []string {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.StateDir))
	parent := fmt.Sprintf("preheat-%08x", h.Sum32())
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + parent, "/sys/fs/cgroup/*/" + parent} {
		roots, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range roots {
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					found = append(found, path)
				}
				return nil // folders come and go meanwhile
			})
		}
	}
	return found
}

// Processes are the pids of everything in the sandboxes' cgroups.
func (p *Product) Processes(t testing.TB) []int {
	t.Helper()
	var pids []int
	for _, dir := range p.Cgroups(t) {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// mounts counts the mounts below the state folder.
func (p *Product) mounts(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), p.StateDir)
}
