package lifecycle

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

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// containers are the containers that runc knows of in a state folder.
func containers(t *testing.T, stateDir string) []string {
	t.Helper()
	out, err := exec.Command(filepath.Join(product.Root(t), "build/bin/runc"), "--root", filepath.Join(stateDir, "runc"), "list", "--format", "json").Output()
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

// cgroups are the folders of the sandboxes' cgroups of a state folder.
func cgroups(t *testing.T, stateDir string) []string {
	t.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(stateDir))
	parent := fmt.Sprintf("preheat-%08x", h.Sum32())
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + parent, "/sys/fs/cgroup/*/" + parent} {
		roots, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					found = append(found, path)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return found
}

// processes are the pids of everything in the sandboxes' cgroups.
func processes(t *testing.T, stateDir string) []int {
	t.Helper()
	var pids []int
	for _, dir := range cgroups(t, stateDir) {
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

// mounts counts the mounts below a state folder.
func mounts(t *testing.T, stateDir string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), stateDir)
}

// pools are the sandboxes that the server says it has, by state.
func pools(t *testing.T, p *product.Product) map[string][]string {
	t.Helper()
	var state struct{ Pools []execution.PoolStatus }
	p.Get(t, "/v1/pools", &state)
	names := map[string][]string{}
	for _, pool := range state.Pools {
		for _, s := range pool.Sandboxes {
			names[s.State] = append(names[s.State], s.Name)
		}
	}
	return names
}

// nothingLeft fails the test if a stopped server has left anything.
func nothingLeft(t *testing.T, stateDir string) {
	t.Helper()
	if left := processes(t, stateDir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left := cgroups(t, stateDir); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
	if left := containers(t, stateDir); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
	if n := mounts(t, stateDir); n > 0 {
		t.Errorf("%d mounts are left", n)
	}
	bundles, err := os.ReadDir(filepath.Join(stateDir, "bundles"))
	if err != nil || len(bundles) > 0 {
		t.Errorf("bundles are left: %v, %v", bundles, err)
	}
}
