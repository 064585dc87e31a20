package runc

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestGap(t *testing.T) {
	for _, test := range []struct {
		name  string
		taken []tenure
		count int
		want  int
	}{
		{"nobody has any", nil, 64, 0},
		{"all of them", nil, maxRanges, 0},
		{"behind another", []tenure{{First: 0, Count: 64}}, 64, 64},
		{"before another", []tenure{{First: 64, Count: 64}}, 64, 0},
		{"between two, in no order", []tenure{{First: 128, Count: 64}, {First: 0, Count: 64}}, 64, 64},
		{"where it is large enough", []tenure{{First: 0, Count: 64}, {First: 100, Count: 64}}, 64, 164},
		{"the last", []tenure{{First: 0, Count: maxRanges - 1}}, 1, maxRanges - 1},
		{"none is left", []tenure{{First: 0, Count: maxRanges}}, 1, -1},
		{"more than there are", nil, maxRanges + 1, -1},
	} {
		got, err := gap(test.taken, test.count)
		if test.want < 0 && err == nil || test.want >= 0 && (err != nil || got != test.want) {
			t.Errorf("%s: %d, %v; want %d", test.name, got, err, test.want)
		}
	}
}

// Whoever comes and goes: no two servers have a range in common.
func TestGapsNeverOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var taken []tenure
		for range 100 {
			if len(taken) > 0 && rng.IntN(3) == 0 {
				i := rng.IntN(len(taken))
				taken = append(taken[:i], taken[i+1:]...)
				continue
			}
			count := 1 + rng.IntN(400)
			first, err := gap(taken, count)
			if err != nil {
				continue
			}
			for _, other := range taken {
				if first < other.First+other.Count && other.First < first+count {
					t.Fatalf("%d ranges from %d overlap with %+v", count, first, other)
				}
			}
			if first < 0 || first+count > maxRanges {
				t.Fatalf("%d ranges from %d", count, first)
			}
			taken = append(taken, tenure{First: first, Count: count})
		}
	}
}

// Servers of several state folders have ranges of their own. Those of a server
// that was killed stay its own while sandboxes may be left.
func TestRegisterOfIDs(t *testing.T) {
	dir := t.TempDir()
	r := register{filepath.Join(dir, "ids")}
	server := func(name string) (string, *os.File) {
		t.Helper()
		path := filepath.Join(dir, name)
		f, err := lock(path)
		if err != nil {
			t.Fatal(err)
		}
		return path, f
	}
	take := func(stateDir string, want int) {
		t.Helper()
		if got, err := r.take(t.Context(), stateDir, 8); err != nil || got != want {
			t.Errorf("%s has the ranges from %d on, %v; want %d", filepath.Base(stateDir), got, err, want)
		}
	}
	a, lockOfA := server("a")
	b, lockOfB := server("b")
	take(a, 0)
	take(b, 8)
	take(a, 0) // a restart has the same
	for _, err := range []error{os.Mkdir(filepath.Join(bundleRoot(a), "left"), 0o700), lockOfA.Close(), lockOfB.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c, lockOfC := server("c")
	take(c, 8) // b has left nothing, a has
	if err := os.RemoveAll(a); err != nil {
		t.Fatal(err)
	}
	take(b, 0)
	if err := errors.Join(r.release(t.Context(), c), lockOfC.Close()); err != nil {
		t.Fatal(err)
	}
	if left, err := r.others(b); err != nil || len(left) > 0 {
		t.Errorf("registered are %+v, %v", left, err)
	}
}

func TestRegisterOfIDsIsBusy(t *testing.T) {
	r := register{filepath.Join(t.TempDir(), "ids")}
	err := r.locked(t.Context(), func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.take(ctx, "/run/x", 8)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if err := os.Chmod(r.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := r.take(t.Context(), "/run/x", 8); err == nil || !strings.Contains(err.Error(), "can be written by other users") {
		t.Errorf("the error is %v", err)
	}
	if err := errors.Join(os.Chmod(r.dir, 0o700), os.WriteFile(r.file(), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.take(t.Context(), "/run/x", 8); err == nil || !strings.Contains(err.Error(), r.file()) {
		t.Errorf("the error is %v", err)
	}
}

// Two servers on one machine give their sandboxes different host ids.
func TestServersShareNoIDs(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("without root there is one range of ids")
	}
	seen := map[int]bool{}
	for range 2 {
		b := testBackend(t, "exit 1")
		for range cap(b.ranges) {
			n := <-b.ranges
			if seen[n] {
				t.Fatalf("two servers have the range of ids number %d", n)
			}
			seen[n] = true
		}
	}
}
