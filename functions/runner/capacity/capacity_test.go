package capacity

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	all := func(n string) map[string]string {
		return map[string]string{"PYTHON_CPU_COUNT": n, "OMP_NUM_THREADS": n, "GOMAXPROCS": n, "RAYON_NUM_THREADS": n}
	}
	for name, test := range map[string]struct {
		files, env, want map[string]string
	}{
		"v2, one":             {map[string]string{"cpu.max": "100000 100000\n"}, nil, all("1")},
		"v2, half of one":     {map[string]string{"cpu.max": "50000 100000\n"}, nil, all("1")},
		"v2, one and a half":  {map[string]string{"cpu.max": "150000 100000\n"}, nil, all("2")},
		"v2, no quota":        {map[string]string{"cpu.max": "max 100000\n"}, nil, nil},
		"v1, two":             {map[string]string{"cpu/cpu.cfs_quota_us": "20000\n", "cpu/cpu.cfs_period_us": "10000\n"}, nil, all("2")},
		"v1, no quota":        {map[string]string{"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, nil, nil},
		"v1, no period":       {map[string]string{"cpu/cpu.cfs_quota_us": "20000\n"}, nil, nil},
		"no cgroup":           {nil, nil, nil},
		"not a number":        {map[string]string{"cpu.max": "many 100000\n"}, nil, nil},
		"a period of nothing": {map[string]string{"cpu.max": "100000 0\n"}, nil, nil},
		"empty":               {map[string]string{"cpu.max": ""}, nil, nil},
		"the image's own": {
			map[string]string{"cpu.max": "100000 100000\n"}, map[string]string{"OMP_NUM_THREADS": "7", "A": "b"},
			map[string]string{"PYTHON_CPU_COUNT": "1", "OMP_NUM_THREADS": "7", "GOMAXPROCS": "1", "RAYON_NUM_THREADS": "1", "A": "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if err := os.Mkdir(filepath.Join(root, "cpu"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range test.files {
				if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			env := maps.Clone(test.env)
			if env == nil {
				env = map[string]string{}
			}
			Environment(env, root)
			if !maps.Equal(env, test.want) {
				t.Errorf("%v, not %v", env, test.want)
			}
		})
	}
}
