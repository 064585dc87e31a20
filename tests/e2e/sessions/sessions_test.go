package sessions

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// cell is one run of a program and what is expected of it.
type cell struct {
	source, stdin, interruptAt string
	args                       []string
	env                        map[string]string

	stdout, stderr string
	shown          []string
	exitCode       int
	lost           bool
}

// load reads a program. Its files are named for the cell: 1.py is the first
// one's source, 1.stdin, 1.args, 1.env and 1.interrupt (the text of its standard
// output at which it is interrupted) go with it, and 1.stdout, 1.stderr,
// 1.shown, 1.exit (a number, or "N lost" where the interpreter ends) are expected.
// A standard error that begins with a line of three dots may begin with anything:
// nobody knows the line in which an interrupt arrives.
func load(t *testing.T, path string) []cell {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	check(t, err)
	var cells []cell
	for _, f := range archive.Files {
		number, kind, _ := strings.Cut(f.Name, ".")
		text := string(f.Data)
		if kind == "py" {
			cells = append(cells, cell{source: text, env: map[string]string{}})
		}
		if number != strconv.Itoa(len(cells)) {
			t.Fatalf("%s: %s is out of order", path, f.Name)
		}
		c := &cells[len(cells)-1]
		switch kind {
		case "py":
		case "stdin":
			c.stdin = text
		case "args":
			c.args = strings.Fields(text)
		case "env":
			for _, entry := range strings.Fields(text) {
				name, value, _ := strings.Cut(entry, "=")
				c.env[name] = value
			}
		case "interrupt":
			c.interruptAt = strings.TrimSpace(text)
		case "stdout":
			c.stdout = text
		case "stderr":
			c.stderr = text
		case "shown":
			c.shown = strings.Split(strings.TrimSpace(text), "\n")
		case "exit":
			code, state, _ := strings.Cut(strings.TrimSpace(text), " ")
			c.exitCode, err = strconv.Atoi(code)
			check(t, err)
			c.lost = state == "lost"
		default:
			t.Fatalf("%s: %s is of no known kind", path, f.Name)
		}
	}
	return cells
}

// TestPythonCells runs each program in one interpreter and compares every
// cell's streams, results and exit code.
func TestPythonCells(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/python/*.txtar")
	check(t, err)
	if len(paths) == 0 {
		t.Fatal("there are no programs")
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			in := startPython(t)
			for _, c := range load(t, path) {
				compare(t, in, c)
			}
		})
	}
}

func compare(t *testing.T, in *interpreter, c cell) {
	t.Helper()
	got := in.run(t, c)
	stdout, stderr := in.written(t, got.lost)
	if end, ok := strings.CutPrefix(c.stderr, "...\n"); ok && strings.HasSuffix(stderr, end) {
		stderr = c.stderr
	}
	for _, part := range []struct{ what, got, want string }{
		{"stdout", stdout, c.stdout},
		{"stderr", stderr, c.stderr},
		{"shown", strings.Join(got.shown, "\n"), strings.Join(c.shown, "\n")},
		{"exit", fmt.Sprint(got.exitCode, got.lost), fmt.Sprint(c.exitCode, c.lost)},
	} {
		if part.got != part.want {
			t.Errorf("%s of cell %d\ngot:\n%s\nwant:\n%s", part.what, in.sequence, part.got, part.want)
		}
	}
}

// written returns what a cell has written to its streams. A further cell marks
// their ends; where the interpreter has ended, the streams have.
func (in *interpreter) written(t *testing.T, lost bool) (stdout, stderr string) {
	t.Helper()
	if lost {
		<-in.stdout.ended
		<-in.stderr.ended
		return in.stdout.String(), in.stderr.String()
	}
	const mark = "\x00end of cell\x00"
	if e := in.run(t, cell{source: fmt.Sprintf("import os as _os; _os.write(1, b%q), _os.write(2, b%[1]q);", mark)}); e.exitCode != 0 {
		t.Fatalf("the streams could not be marked: exit code %d: %s", e.exitCode, in.stderr)
	}
	in.sequence-- // the number of the program's own next cell
	return in.stdout.upTo(mark), in.stderr.upTo(mark)
}
