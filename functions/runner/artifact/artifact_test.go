package artifact

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
)

var generous = Limits{Count: 100, Bytes: 1 << 20}

// collect returns what Collect sends, content included, and its notes.
func collect(t *testing.T, dir string, known Inventory, limits Limits) ([]execution.Artifact, []string) {
	t.Helper()
	var got []execution.Artifact
	notes := Collect(dir, known, limits, func(a execution.Artifact, content io.Reader) error {
		if (content == nil) != (a.Omitted != "") {
			t.Errorf("%q has content %v and is omitted for %q", a.Path, content != nil, a.Omitted)
		}
		if content != nil {
			b, err := io.ReadAll(content)
			if err != nil {
				t.Errorf("%s: %v", a.Path, err)
			}
			a.Content = string(b)
		}
		got = append(got, a)
		return nil
	})
	return got, notes
}

func take(t *testing.T, dir string) Inventory {
	t.Helper()
	known, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func write(t *testing.T, dir, path, content string) {
	t.Helper()
	full := filepath.Join(dir, path)
	must(t, os.MkdirAll(filepath.Dir(full), 0o755))
	must(t, os.WriteFile(full, []byte(content), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func paths(artifacts []execution.Artifact) []string {
	var list []string
	for _, a := range artifacts {
		list = append(list, a.Path)
	}
	return list
}

// TestHostileTree has everything that should be neither followed nor waited
// for (S7).
func TestHostileTree(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "out/a.csv", "x,y\n")
	write(t, dir, "b.png", "\xff")
	write(t, dir, "a\n.txt", "newline")
	write(t, dir, "\xff\xfe.bin", "no text")
	write(t, dir, `back\slash`, "")
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "x")))
	must(t, os.Symlink("/", filepath.Join(dir, "root")))
	must(t, os.Symlink(".", filepath.Join(dir, "loop")))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666))
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(t, err)
	defer func() { _ = l.Close() }()
	must(t, os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o644))
	must(t, os.Truncate(filepath.Join(dir, "sparse"), 10<<30))

	got, notes := collect(t, dir, Inventory{}, generous)
	want := []execution.Artifact{
		{Path: `a\x0a.txt`, Size: 7, MIME: "text/plain", Content: "newline"},
		{Path: "b.png", Size: 1, MIME: "image/png", Content: "\xff"},
		{Path: `back\\slash`, MIME: "application/octet-stream"},
		{Path: "fifo", MIME: "application/octet-stream", Omitted: OmittedSpecial},
		{Path: "loop", Size: 1, MIME: "application/octet-stream", Omitted: OmittedLink},
		{Path: "out/a.csv", Size: 4, MIME: "text/csv", Content: "x,y\n"},
		{Path: "root", Size: 1, MIME: "application/octet-stream", Omitted: OmittedLink},
		{Path: "socket", MIME: "application/octet-stream", Omitted: OmittedSpecial},
		{Path: "sparse", Size: 10 << 30, MIME: "application/octet-stream", Omitted: OmittedSize},
		{Path: "x", Size: 11, MIME: "application/octet-stream", Omitted: OmittedLink},
		{Path: `\xff\xfe.bin`, Size: 7, MIME: "application/octet-stream", Content: "no text"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("collected\n%+v\nnot\n%+v", got, want)
	}
	if len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
}

// TestInventory: only what changed after Take is an artifact.
func TestInventory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"same", "rewritten", "longer", "replaced", "gone", "d/same"} {
		write(t, dir, name, "old")
	}
	known := take(t, dir)
	later := time.Now().Add(time.Second)
	must(t, os.Chtimes(filepath.Join(dir, "rewritten"), later, later))
	write(t, dir, "longer", "old and more")
	write(t, dir, "other", "old")
	must(t, os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "replaced")))
	must(t, os.Remove(filepath.Join(dir, "gone")))
	write(t, dir, "d/new", "")
	got, notes := collect(t, dir, known, generous)
	if want := []string{"d/new", "longer", "replaced", "rewritten"}; !reflect.DeepEqual(paths(got), want) || len(notes) != 0 {
		t.Errorf("collected %q (notes %q), not %q", paths(got), notes, want)
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	for i, size := range []int{4, 8, 3, 0, 5} {
		write(t, dir, fmt.Sprint(i), strings.Repeat("x", size))
		at := time.Unix(int64(i), 0)
		must(t, os.Chtimes(filepath.Join(dir, fmt.Sprint(i)), at, at))
	}
	got, notes := collect(t, dir, Inventory{}, Limits{Count: 4, Bytes: 8})
	var omitted []string
	for _, a := range got {
		omitted = append(omitted, a.Omitted)
	}
	// The newest first: 5 and 3 bytes fit, and nothing.
	if want := []string{OmittedSize, "", "", ""}; !reflect.DeepEqual(omitted, want) {
		t.Errorf("omitted %q, not %q", omitted, want)
	}
	if want := []string{"1 more file(s) were written than the 4 that are returned: 0 (4 bytes)"}; !reflect.DeepEqual(notes, want) {
		t.Errorf("notes %q, not %q", notes, want)
	}
}

// TestOwnFilesFirst: caches do not push out what a program was written for.
func TestOwnFilesFirst(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		write(t, dir, fmt.Sprintf(".cache/%02d", i), "cached")
		write(t, dir, fmt.Sprintf("pkg/__pycache__/%02d.pyc", i), "cached")
	}
	write(t, dir, "deep/down/log.txt", "")
	write(t, dir, "report.csv", "")
	write(t, dir, "old.csv", "")
	must(t, os.Chtimes(filepath.Join(dir, "old.csv"), time.Unix(1, 0), time.Unix(1, 0)))
	got, notes := collect(t, dir, Inventory{}, Limits{Count: 2, Bytes: 100})
	if want := []string{"old.csv", "report.csv"}; !reflect.DeepEqual(paths(got), want) {
		t.Errorf("collected %q, not %q", paths(got), want)
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "61 more file(s) were written than the 2 that are returned: deep/down/log.txt (0 bytes), .cache/") ||
		!strings.HasSuffix(notes[0], "(6 bytes), and 41 more") {
		t.Errorf("notes %q", notes)
	}
}

func TestElsewhere(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, name := range []string{".config/x", "tmpab12x9qz", "tmp.Ab12Cd34Ef", "tmpab12x9qy/in", "tmpab12x9qz.csv"} {
		write(t, a, name, "x")
	}
	if note := Elsewhere(a, b, filepath.Join(a, "none")); note != "" {
		t.Errorf("the note is %q", note)
	}
	write(t, a, "tmperature.csv", "x")
	write(t, b, "out/report.csv", "xyz")
	want := fmt.Sprintf("files outside of the working directory are not returned: %s (1 bytes), %s (3 bytes)",
		filepath.Join(a, "tmperature.csv"), filepath.Join(b, "out/report.csv"))
	if note := Elsewhere(a, b); note != want {
		t.Errorf("the note is %q, not %q", note, want)
	}
}

func TestTypes(t *testing.T) {
	for name, want := range map[string]string{
		"a.XLSX": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "b.pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
		"c.ipynb": "application/x-ipynb+json", "d.rs": "text/plain", "e.tar.gz": "application/gzip", "f": "application/octet-stream", ".png": "image/png",
	} {
		if got := MIME(name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
}

// TestTreeThatIsTooLarge: what was found before a bound is kept, and a note
// names the bound.
func TestTreeThatIsTooLarge(t *testing.T) {
	deep, wide := t.TempDir(), t.TempDir()
	write(t, deep, "a", "")
	write(t, deep, strings.Repeat("d/", maxDepth)+"in", "")
	write(t, deep, strings.Repeat("d/", maxDepth+1)+"beyond", "")
	for i := range 20 {
		for j := range maxEntries / 19 {
			path := filepath.Join(wide, fmt.Sprintf("%02d", i))
			must(t, os.MkdirAll(path, 0o755))
			must(t, os.Symlink("x", filepath.Join(path, fmt.Sprint(j))))
		}
	}
	tests := []struct {
		dir  string
		want error
		last string
	}{
		{deep, errTooDeep, strings.Repeat("d/", maxDepth) + "in"}, {wide, errTooMany, ""},
	}
	for _, tt := range tests {
		got, notes := collect(t, tt.dir, Inventory{}, Limits{Count: maxEntries})
		if want := []string{"the list of files is incomplete: " + tt.want.Error()}; !reflect.DeepEqual(notes, want) {
			t.Errorf("notes %q, not %q", notes, want)
		}
		if len(got) == 0 || tt.last != "" && got[len(got)-1].Path != tt.last {
			t.Errorf("collected %d files, the last of them %q", len(got), paths(got)[max(0, len(got)-1):])
		}
	}
}

// TestDirectoryThatIsReplaced: a directory that became a link after it was
// listed is not entered.
func TestDirectoryThatIsReplaced(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret", "s")
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	root, err := os.Open(dir)
	must(t, err)
	defer func() { _ = root.Close() }()
	must(t, os.Remove(filepath.Join(dir, "d")))
	must(t, os.Symlink(outside, filepath.Join(dir, "d")))
	for _, name := range []string{"d", "d/secret", "../" + filepath.Base(outside), "/etc/passwd"} {
		if f, err := open(int(root.Fd()), name, unix.O_RDONLY); err == nil {
			t.Errorf("%s was opened", name)
			_ = f.Close()
		}
	}
}

// TestSendThatFails ends the collection.
func TestSendThatFails(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "")
	write(t, dir, "b", "")
	calls := 0
	Collect(dir, Inventory{}, generous, func(execution.Artifact, io.Reader) error {
		calls++
		return errors.New("the connection is gone")
	})
	if calls != 1 {
		t.Errorf("send was called %d times", calls)
	}
}

var names = []string{"a", "é€😀", "a\nb", `\x41`, "\xff\x00", "..", "...", "-rf", "\u202egnp.exe", "\x7f", " ", "\xe2\x82", `\\`}

// FuzzPrintable: every path is shown as text, and can be turned back.
func FuzzPrintable(f *testing.F) {
	for _, seed := range names {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		shown := printable(name)
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, unicode.IsControl) {
			t.Fatalf("%q is shown as %q", name, shown)
		}
		if back := original(t, shown); back != name {
			t.Fatalf("%q is shown as %q, which means %q", name, shown, back)
		}
	})
}

// FuzzNames makes a file with any name and finds exactly that one.
func FuzzNames(f *testing.F) {
	for _, seed := range names {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
			return // no file can have this name
		}
		write(t, dir, name, "content")
		got, notes := collect(t, dir, Inventory{}, generous)
		must(t, os.Remove(filepath.Join(dir, name)))
		want := []execution.Artifact{{Path: printable(name), Size: 7, MIME: MIME(name), Content: "content"}}
		if !reflect.DeepEqual(got, want) || len(notes) != 0 {
			t.Fatalf("%q was collected as %+v (notes %q)", name, got, notes)
		}
	})
}

// original undoes printable.
func original(t *testing.T, shown string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(shown); i++ {
		switch {
		case shown[i] != '\\':
			b.WriteByte(shown[i])
		case strings.HasPrefix(shown[i:], `\\`):
			b.WriteByte('\\')
			i++
		default:
			var c byte
			if _, err := fmt.Sscanf(shown[i:], `\x%02x`, &c); err != nil {
				t.Fatalf("%q at %d: %v", shown, i, err)
			}
			b.WriteByte(c)
			i += 3
		}
	}
	return b.String()
}
