package pooltest

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// read returns a part of a file, which must be there.
func (s session) read(t *testing.T, path string, offset, length int64) (pool.SessionFile, string) {
	t.Helper()
	f, content, err := s.Open(t.Context(), path, offset, length)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	text, err := io.ReadAll(content)
	if err := content.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Errorf("read %s: %v", path, err)
	}
	return f, string(text)
}

// Files go into a session and come out of it as they are, and programs see
// them.
func sessionFiles(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	const name = "data/Grüße %25.txt"
	f, created, err := opened.Write(t.Context(), name, strings.NewReader("0123456789"))
	if err != nil || !created || f.Path != name || f.Size != 10 {
		t.Fatalf("write: %+v, %v, %v", f, created, err)
	}
	opened.cell(t, "x = open('"+name+"').read(); print(x); open('out', 'w').write('out')", "0123456789\n", execution.SessionFresh, 1)
	if got, text := opened.read(t, name, 0, -1); text != "0123456789" || got.ETag != f.ETag || got.Size != 10 {
		t.Errorf("the file is %+v: %q", got, text)
	}
	if _, text := opened.read(t, name, 2, 3); text != "234" {
		t.Errorf("a part is %q", text)
	}
	changed, created, err := opened.Write(t.Context(), name, strings.NewReader("other"))
	if err != nil || created || changed.ETag == f.ETag {
		t.Errorf("write again: %+v, %v, %v", changed, created, err)
	}
	list, more, err := opened.Files(t.Context(), 10)
	if err != nil || more || len(list) != 2 || list[0].Path != name || list[1].Path != "out" || list[0].ETag != changed.ETag {
		t.Errorf("the list is %+v, %v, %v", list, more, err)
	}
	if list, more, err := opened.Files(t.Context(), 1); err != nil || !more || len(list) != 1 {
		t.Errorf("a short list is %+v, %v, %v", list, more, err)
	}
	if got := opened.unpack(t, "data"); len(got) != 1 {
		t.Errorf("the archive of a folder has %q", got)
	}
	if got := opened.unpack(t, ""); !maps.Equal(got, map[string]string{name: "other", "out": "out"}) {
		t.Errorf("the archive has %q", got)
	}
	if err := opened.Remove(t.Context(), "data"); err != nil {
		t.Error(err)
	}
	_, _, err = opened.Open(t.Context(), name, 0, -1)
	check(t, err, pool.ErrNoFile)
	check(t, opened.Remove(t.Context(), name), pool.ErrNoFile)
}

// unpack returns the files of an archive.
func (s session) unpack(t *testing.T, folder string) map[string]string {
	t.Helper()
	archive, err := s.Archive(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	files := map[string]string{}
	for r := tar.NewReader(archive); ; {
		head, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[head.Name] = string(text)
		}
	}
}

// A file whose content breaks off is not there, and the one before it still is.
func sessionFileBreaksOff(t *testing.T, s suite) {
	opened := s.open(t, wantSession())
	if _, _, err := opened.Write(t.Context(), "a", strings.NewReader("whole")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a", "b"} {
		if _, _, err := opened.Write(t.Context(), path, io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), broken{})); err == nil {
			t.Errorf("%s: a part was taken for the whole", path)
		}
	}
	list, _, err := opened.Files(t.Context(), 10)
	if err != nil || !slices.EqualFunc(list, []string{"a"}, func(f pool.SessionFile, path string) bool { return f.Path == path }) {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if _, text := opened.read(t, "a", 0, -1); text != "whole" {
		t.Errorf("the file is %d bytes", len(text))
	}
}

// broken is content that breaks off.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
