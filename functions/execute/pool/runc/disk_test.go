package runc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

func TestWholeDisk(t *testing.T) {
	sys := t.TempDir()
	for path, text := range map[string]string{
		"devices/vda/dev": "254:0\n", "devices/vda/vda1/dev": "254:1\n", "devices/vda/vda1/partition": "1\n", "devices/dm-0/dev": "253:0\n",
	} {
		path = filepath.Join(sys, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(sys, "dev/block"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"254:0": "vda", "254:1": "vda/vda1", "253:0": "dm-0"} {
		if err := os.Symlink("../../devices/"+target, filepath.Join(sys, "dev/block", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		of, want disk
		found    bool
	}{
		{disk{254, 0}, disk{254, 0}, true}, {disk{254, 1}, disk{254, 0}, true}, {disk{253, 0}, disk{253, 0}, true}, {disk{0, 40}, disk{}, false},
	} {
		if got, found := wholeDisk(sys, test.of); got != test.want || found != test.found {
			t.Errorf("the disk of %v is %v, %v", test.of, got, found)
		}
	}
}

func TestDiskLimits(t *testing.T) {
	c := Config{StateDir: "/run/x", Limits: SandboxLimits{Memory: 512 << 20, CPUs: 1}}
	for _, disks := range [][]disk{nil, {{254, 0}}, {{254, 0}, {8, 16}}} {
		s, err := c.Spec(Host{Root: true, Cgroups: true, disks: disks}, Image{}, local.PoolConfig{}, "s", 0)
		if err != nil {
			t.Fatal(err)
		}
		limits := s.Linux.Resources.BlockIO
		if len(disks) == 0 {
			if limits != nil {
				t.Errorf("without a disk the limits are %+v", limits)
			}
			continue
		}
		if len(limits.ThrottleReadBpsDevice) != len(disks) || len(limits.ThrottleReadIOPSDevice) != len(disks) {
			t.Fatalf("the limits are %+v", limits)
		}
		for i, d := range disks {
			if l := limits.ThrottleReadBpsDevice[i]; l.Major != d.major || l.Minor != d.minor || l.Rate != diskBytes {
				t.Errorf("the limit of %v is %+v", d, l)
			}
		}
	}
}
