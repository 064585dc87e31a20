package runc

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

// What a failed creation leaves keeps its id range until it is destroyed.
func TestFailedCreation(t *testing.T) {
	b := testBackend(t, `echo "no such device" >&2; exit 1`)
	free := len(b.ranges)
	i, err := b.Create(t.Context(), local.PoolConfig{Name: "p", Warm: []string{"python"}}, "p-1")
	if i == nil || err == nil || !strings.Contains(err.Error(), "no such device") {
		t.Fatalf("%v, %v", i, err)
	}
	if s := written(t, b, "p-1"); !slices.Contains(s.Process.Env, "PREHEAT_RUNNER_WARM=python") {
		t.Errorf("environment %q", s.Process.Env)
	}
	if n := len(b.ranges); n != free-1 {
		t.Errorf("%d id ranges are free, not %d", n, free-1)
	}
	if err := i.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if err := i.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(b.bundle("p-1")); !os.IsNotExist(err) || len(b.ranges) != free {
		t.Errorf("bundle: %v; %d id ranges are free, not %d", err, len(b.ranges), free)
	}
	dir := filepath.Dir(b.config.StateDir)
	want := "run --bundle /state/bundles/p-1 --detach --pid-file /state/bundles/p-1/pid --no-new-keyring --preserve-fds 1 p-1"
	if got := calls(t, dir); !slices.Equal(sorted(got), sorted([]string{want})) {
		t.Errorf("calls %q", got)
	}
}

// sorted has the words of each call in order: go-runc's order is its own.
func sorted(list []string) []string {
	var out []string
	for _, s := range list {
		words := strings.Fields(s)
		slices.Sort(words)
		out = append(out, strings.Join(words, " "))
	}
	return out
}

// A destruction that fails can be tried again, and the id range comes back only
// when nothing is left.
func TestFailedDestruction(t *testing.T) {
	b := testBackend(t, `case "$*" in
	delete*) [ -e "${0%/*}/mended" ] || { echo busy >&2; exit 1; }; rm -r "${0%/*}"/state/runc/p-1;;
	*) exit 1;;
	esac`)
	free := len(b.ranges)
	i, err := b.Create(t.Context(), local.PoolConfig{Name: "p"}, "p-1")
	if err == nil {
		t.Fatal("a failed creation succeeded")
	}
	if err := os.Mkdir(filepath.Join(b.runc.Root, "p-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := i.Destroy(t.Context()); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("the error is %v", err)
	}
	if n := len(b.ranges); n != free-1 {
		t.Errorf("%d id ranges are free, not %d", n, free-1)
	}
	dir := filepath.Dir(b.config.StateDir)
	if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := i.Destroy(t.Context()); err != nil || len(b.ranges) != free {
		t.Errorf("%v; %d id ranges are free, not %d", err, len(b.ranges), free)
	}
	if got := calls(t, dir)[1:]; !slices.Equal(got, []string{"delete p-1", "delete --force p-1", "delete p-1"}) {
		t.Errorf("calls %q", got)
	}
}

func TestNoIDRangeIsLeft(t *testing.T) {
	b := testBackend(t, "exit 1")
	for range len(b.ranges) {
		<-b.ranges
	}
	if i, err := b.Create(t.Context(), local.PoolConfig{}, "p-1"); i != nil || !errors.Is(err, local.ErrNoCapacity) {
		t.Errorf("%v, %v", i, err)
	}
}

// The state folder has one user at a time, and what the one before has left is
// removed.
func TestStateFolder(t *testing.T) {
	b := testBackend(t, `case "$*" in delete*) exit 1;; esac`)
	if _, err := New(t.Context(), b.config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another server uses") {
		t.Errorf("a second server: %v", err)
	}
	for _, dir := range []string{filepath.Join(b.runc.Root, "old"), b.bundle("old")} {
		if err := os.MkdirAll(filepath.Join(dir, "within"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{b.runc.Root, bundleRoot(b.config.StateDir)} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s has %v, %v", dir, left, err)
		}
	}
	if got := calls(t, filepath.Dir(b.config.StateDir)); !slices.Equal(got, []string{"delete --force old"}) {
		t.Errorf("calls %q", got)
	}
}
