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

func TestParseOOMKills(t *testing.T) {
	tests := []struct {
		text string
		want int64
		ok   bool
	}{
		{"", 0, false},
		{"low 0\nhigh 0\nmax 5\noom 1\n", 0, false},
		{"oom_kill 7\n", 7, true},
		{"oom_kill 7", 7, true},
		{"oom_group_kill 2\n", 0, false},
		{"oom_kill_disable 1\nunder_oom 0\noom_kill 4\n", 4, true},
		{"oom_kill many\n", 0, false},
		{"oom_kill\n", 0, false},
	}
	for _, tt := range tests {
		if got, ok := ParseOOMKills(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%q gave %d, %v", tt.text, got, ok)
		}
	}
}
