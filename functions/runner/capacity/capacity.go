// Package capacity says how many processors a sandbox may use, in the words of
// the languages and libraries that size their pools by them. They would else
// count the machine's.
package capacity

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// variables are read by Python (3.13 and later), by OpenMP and by what follows
// it where its own variable is not set (OpenBLAS, MKL, numexpr, nproc), by Go
// and by Rust's rayon. Node.js sizes its heap by its cgroup, and its pool of
// threads by no machine.
var variables = []string{"PYTHON_CPU_COUNT", "OMP_NUM_THREADS", "GOMAXPROCS", "RAYON_NUM_THREADS"}

// Environment sets in env the number of processors that the cgroup at root
// allows, unless env has a number already or the cgroup allows all.
func Environment(env map[string]string, root string) {
	n := processors(root)
	if n == 0 {
		return
	}
	for _, name := range variables {
		if _, set := env[name]; !set {
			env[name] = strconv.Itoa(n)
		}
	}
}

// processors is how many processors the cgroup's quota is worth, rounded up, or
// 0 if it has none or cannot be read. root is where the cgroup file systems are
// mounted (Linux, admin-guide/cgroup-v2.rst; scheduler/sched-bwc.rst for v1).
func processors(root string) int {
	if text, err := os.ReadFile(filepath.Join(root, "cpu.max")); err == nil {
		quota, period, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		return share(quota, period)
	}
	quota, err := os.ReadFile(filepath.Join(root, "cpu/cpu.cfs_quota_us"))
	if err != nil {
		return 0
	}
	period, err := os.ReadFile(filepath.Join(root, "cpu/cpu.cfs_period_us"))
	if err != nil {
		return 0
	}
	return share(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

// share is quota by period, or 0 if there is no quota ("max", or -1).
func share(quota, period string) int {
	q, err := strconv.ParseInt(quota, 10, 64)
	if err != nil || q <= 0 {
		return 0
	}
	p, err := strconv.ParseInt(period, 10, 64)
	if err != nil || p <= 0 {
		return 0
	}
	return int(math.Ceil(float64(q) / float64(p)))
}
