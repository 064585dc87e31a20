package oom

import "testing"

func TestKills(t *testing.T) {
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
		if got, ok := Kills(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%q gave %d, %v", tt.text, got, ok)
		}
	}
}
