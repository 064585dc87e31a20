package execution_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// What Validate accepts can be written below a directory, each file as itself.
// Of paths without dots it accepts all that can be.
func TestPathsCanBeWritten(t *testing.T) {
	const rounds, seed = 1000, 1
	random := rand.New(rand.NewPCG(seed, seed))
	plain := []string{"a", "b", "é", "a b", `\`, "-", strings.Repeat("x", 255)}
	odd := append([]string{"", ".", "..", "...", "a\x00", "\xff", "main.py", strings.Repeat("x", 256)}, plain...)
	root := t.TempDir()
	accepted, conflicts := 0, 0
	for round := range rounds {
		parts := plain
		if round%2 == 1 {
			parts = odd
		}
		files := randomFiles(random, parts)
		_, problem := program(func(r *execution.Request) { r.Files = files }).Validate(languages(), execution.DefaultLimits())
		dir := filepath.Join(root, strconv.Itoa(round))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		err := write(dir, files)
		switch {
		case problem == nil:
			accepted++
			if err != nil {
				t.Fatalf("%q are accepted: %v", files, err)
			}
			if got, want := tree(t, dir), names(files); !slices.Equal(got, want) {
				t.Fatalf("%q are written as %q", want, got)
			}
		case round%2 == 0:
			conflicts++
			if err == nil {
				t.Fatalf("%q are refused: %v", files, problem)
			}
		}
	}
	if accepted < rounds/20 || conflicts < rounds/20 {
		t.Errorf("%d accepted, %d in conflict: the test's paths are not mixed", accepted, conflicts)
	}
}

func randomFiles(random *rand.Rand, parts []string) []execution.File {
	files := make([]execution.File, 1+random.IntN(4))
	for i := range files {
		list := make([]string, 1+random.IntN(3))
		for j := range list {
			list[j] = parts[random.IntN(len(parts))]
		}
		files[i] = execution.File{Path: strings.Join(list, "/"), Content: strconv.Itoa(i)}
	}
	return files
}

// write writes files as the runner does.
func write(dir string, files []execution.File) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, f := range files {
		if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
			return err
		}
		w, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = w.WriteString(f.Content)
		if err := w.Close(); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tree lists the files below dir, with their contents.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		list = append(list, name+"="+string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func names(files []execution.File) (list []string) {
	for _, f := range files {
		list = append(list, f.Path+"="+f.Content)
	}
	slices.Sort(list)
	return list
}
