// Package artifact finds the files that a program left under its working
// directory. It trusts nothing about them: it never follows a link, never
// opens what is not a regular file, and its work is bounded in entries, files,
// bytes and time. The programs that could change the tree have ended.
package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// Reasons for which an artifact's content is left out.
const (
	OmittedLink    = "symbolic link"
	OmittedSpecial = "not a regular file"
	OmittedSize    = "larger than what is left of the size limit"
	OmittedRead    = wire.Unreadable
)

const (
	// maxEntries bounds the directory entries that are looked at.
	maxEntries = 10_000
	// maxDepth bounds how deep directories are entered.
	maxDepth = 32
	// maxTime bounds the search.
	maxTime = 5 * time.Second
	// maxNamed is how many of the files that are not returned are named.
	maxNamed = 20
)

// Limits bounds what is collected.
type Limits struct {
	// Count is the most artifacts, Bytes the most content of all together.
	Count int
	Bytes int64
}

// Inventory remembers files that are no artifacts unless they change.
type Inventory map[string]identity

type identity struct {
	ino   uint64
	size  int64
	mtime unix.StatxTimestamp
}

// Take returns the inventory of the regular files below dir.
func Take(dir string) (Inventory, error) {
	known := Inventory{}
	err := walk(dir, func(path string, st *unix.Statx_t) {
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			known[path] = identify(st)
		}
	})
	return known, err
}

func identify(st *unix.Statx_t) identity {
	return identity{ino: st.Ino, size: int64(st.Size), mtime: st.Mtime}
}

// Send takes an artifact and its content, which is nil when a.Omitted says why
// it is left out, and valid during the call only.
type Send func(a execution.Artifact, content io.Reader) error

// Collect sends the files below dir that known does not hold as they are, in
// the order of their paths, and returns notes on what is missing from them.
// Where there are more than the limits allow, those are sent that a user most
// likely wants. An error of send ends it.
func Collect(dir string, known Inventory, limits Limits, send Send) (notes []string) {
	root, err := os.Open(dir)
	if err != nil {
		return []string{"the list of files is incomplete: " + err.Error()}
	}
	defer func() { _ = root.Close() }()
	files := choice{most: limits.Count + maxNamed}
	err = walk(dir, func(path string, st *unix.Statx_t) {
		if old, ok := known[path]; !ok || old != identify(st) {
			files.add(&candidate{path, *st})
		}
	})
	chosen := files.best[:min(limits.Count, len(files.best))]
	if missed := files.all - len(chosen); missed > 0 {
		notes = append(notes, fmt.Sprintf("%d more file(s) were written than the %d that are returned: %s",
			missed, limits.Count, named(files.best[len(chosen):], missed)))
	}
	if err != nil {
		notes = append(notes, "the list of files is incomplete: "+err.Error())
	}
	room := share(chosen, limits.Bytes)
	slices.SortFunc(chosen, func(a, b *candidate) int { return strings.Compare(a.path, b.path) })
	for _, c := range chosen {
		if sendOne(int(root.Fd()), c, room[c.path], send) != nil {
			break
		}
	}
	return notes
}

// share says which files' content fits into left bytes, the best first.
func share(files []*candidate, left int64) map[string]bool {
	fits := map[string]bool{}
	for _, c := range files {
		if size := int64(c.st.Size); c.st.Mode&unix.S_IFMT == unix.S_IFREG && size <= left {
			fits[c.path] = true
			left -= size
		}
	}
	return fits
}

// named lists files with their sizes. count is how many there are, of which
// files may be the first.
func named(files []*candidate, count int) string {
	var list []string
	for _, c := range files[:min(len(files), maxNamed)] {
		list = append(list, fmt.Sprintf("%s (%d bytes)", printable(c.path), c.st.Size))
	}
	if more := count - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// sendOne sends a file, with its content if that fits.
func sendOne(root int, c *candidate, fits bool, send Send) error {
	a := execution.Artifact{Path: printable(c.path), Size: int64(c.st.Size), MIME: MIME(c.path)}
	switch {
	case c.st.Mode&unix.S_IFMT == unix.S_IFLNK:
		a.Omitted = OmittedLink
	case c.st.Mode&unix.S_IFMT != unix.S_IFREG:
		a.Omitted = OmittedSpecial
	case !fits:
		a.Omitted = OmittedSize
	default:
		f, err := openRegular(root, c.path)
		if err == nil {
			defer func() { _ = f.Close() }()
			return send(a, f)
		}
		a.Omitted = OmittedRead
	}
	return send(a, nil)
}

// openRegular opens a regular file at a path below the directory root.
func openRegular(root int, path string) (*os.File, error) {
	f, err := open(root, path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open opens what is at a path below the directory parent, never through a link.
func open(parent int, name string, flags uint64) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err := unix.Openat2(parent, name, &how)
	if err != nil {
		return nil, &fs.PathError{Op: "openat2", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// visit is called for everything but directories, in the order of the paths.
type visit func(path string, st *unix.Statx_t)

var (
	errTooMany = fmt.Errorf("there are more than %d directory entries", maxEntries)
	errTooDeep = fmt.Errorf("directories are nested deeper than %d", maxDepth)
	errTooSlow = fmt.Errorf("it took longer than %s", maxTime)
)

type walker struct {
	visit visit
	// own says that hidden folders and caches are not entered.
	own      bool
	entries  int
	deadline time.Time
	// problem is the first thing that kept the walk from being whole.
	problem error
}

func walk(dir string, v visit) error { return walkAs(dir, walker{visit: v}) }

func walkAs(dir string, w walker) error {
	root, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	w.deadline = time.Now().Add(maxTime)
	if err := w.directory(root, "", 0); err != nil {
		return err
	}
	return w.problem
}

// directory visits everything in d, whose path is prefix. Errors end the walk;
// what only hides a part of the tree is noted in w.problem.
func (w *walker) directory(d *os.File, prefix string, depth int) error {
	names, err := d.Readdirnames(maxEntries - w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		w.note(err)
		return nil
	}
	if w.entries += len(names); w.entries > maxEntries {
		return errTooMany
	}
	slices.Sort(names)
	for _, name := range names {
		if time.Now().After(w.deadline) {
			return errTooSlow
		}
		if err := w.entry(d, prefix, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(d *os.File, prefix, name string, depth int) error {
	parent, path := int(d.Fd()), filepath.Join(prefix, name)
	var st unix.Statx_t
	if err := unix.Statx(parent, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st); err != nil {
		w.note(fmt.Errorf("%s: %w", printable(path), err))
		return nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		w.visit(path, &st)
		return nil
	}
	if w.own && aside(name) != 0 {
		return nil
	}
	if depth == maxDepth {
		w.note(errTooDeep)
		return nil
	}
	sub, err := open(parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		w.note(fmt.Errorf("%s: directory is unreadable", printable(path)))
		return nil
	}
	defer func() { _ = sub.Close() }()
	return w.directory(sub, path, depth+1)
}

func (w *walker) note(err error) {
	if w.problem == nil {
		w.problem = err
	}
}

// printable writes path so that it is UTF-8, has no control characters and
// can be turned back: bytes that are not text become \xHH, \ becomes \\.
func printable(path string) string {
	var b strings.Builder
	for len(path) > 0 {
		r, n := utf8.DecodeRuneInString(path)
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && n == 1, unicode.IsControl(r):
			for i := range n {
				fmt.Fprintf(&b, `\x%02x`, path[i])
			}
		default:
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String()
}

// Elsewhere names the files in dirs that their owner may have looked for among
// the artifacts: regular ones that are not hidden and have no name of the kind
// that tempfile makes up. It returns a note, or nothing.
func Elsewhere(dirs ...string) string {
	files := choice{most: maxNamed}
	for _, dir := range dirs {
		// What cannot be looked at has nothing that a program could have meant.
		_ = walkAs(dir, walker{own: true, visit: func(path string, st *unix.Statx_t) {
			if st.Mode&unix.S_IFMT == unix.S_IFREG && aside(path) == 0 && !isTemporary(path) {
				files.add(&candidate{filepath.Join(dir, path), *st})
			}
		}})
	}
	if files.all == 0 {
		return ""
	}
	return "files outside of the working directory are not returned: " + named(files.best, files.all)
}

// isTemporary reports whether a path has a name that Python's tempfile or
// mktemp made up: tmp, perhaps a dot, and eight or ten characters.
func isTemporary(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		made, ok := strings.CutPrefix(part, "tmp")
		made, _, _ = strings.Cut(strings.TrimPrefix(made, "."), ".")
		if ok && (len(made) == 8 || len(made) == 10) && strings.IndexFunc(made, func(c rune) bool {
			return c != '_' && !unicode.IsDigit(c) && !unicode.IsLetter(c)
		}) < 0 {
			return true
		}
	}
	return false
}

// List returns the paths of the regular files below dir that keep wants, in their
// order, at most most of them, and reports whether there are more. It follows no
// link, and its work is bounded as that of Collect.
func List(dir string, most int, keep func(path string) bool) (paths []string, more bool, err error) {
	w := walker{visit: func(path string, st *unix.Statx_t) {
		switch {
		case st.Mode&unix.S_IFMT != unix.S_IFREG || !keep(path):
		case len(paths) == most:
			more = true
		default:
			paths = append(paths, path)
		}
	}}
	switch err := walkAs(dir, w); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, false, fmt.Errorf("looking at the files: %w", err)
	case err != nil:
		more = true // what could not be looked at
	}
	return paths, more, nil
}
