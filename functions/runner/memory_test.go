package runner

import "testing"

// TestMemoryEvents reads files in the forms that cgroup v1 and v2 have: each
// folder of testdata is laid out as /sys/fs/cgroup of a sandbox is.
func TestMemoryEvents(t *testing.T) {
	for folder, want := range map[string]int64{"v1-none": 0, "v1-kills": 3, "v2-none": 0, "v2-kills": 2} {
		m := openMemoryEvents("testdata/" + folder)
		if m == nil {
			t.Errorf("%s: no events found", folder)
			continue
		}
		for range 2 {
			if got := m.oomKills(); got != want {
				t.Errorf("%s: %d kills, not %d", folder, got, want)
			}
		}
		m.close()
	}
	m := openMemoryEvents("testdata/no-such-cgroup")
	if got := m.oomKills(); m != nil || got != 0 {
		t.Errorf("no cgroup: %v with %d kills", m, got)
	}
	m.close()
}
