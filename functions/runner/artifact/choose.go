package artifact

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// candidate is a file that may be an artifact.
type candidate struct {
	path string
	st   unix.Statx_t
}

// choice keeps the best of the candidates that it is given, most of them at
// the most, so that its memory does not grow with the number of files.
type choice struct {
	most int
	best []*candidate // the best first
	all  int
}

func (c *choice) add(new *candidate) {
	c.all++
	at, _ := slices.BinarySearchFunc(c.best, new, compare)
	if at == c.most {
		return
	}
	if len(c.best) == c.most {
		c.best = c.best[:c.most-1]
	}
	c.best = slices.Insert(c.best, at, new)
}

// compare orders files by what a program's user most likely wants: what is
// neither hidden nor in a cache, then what is high up in the tree, then what
// was written last.
func compare(a, b *candidate) int {
	return cmp.Or(
		cmp.Compare(aside(a.path), aside(b.path)),
		cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")),
		cmp.Compare(b.st.Mtime.Sec, a.st.Mtime.Sec),
		cmp.Compare(b.st.Mtime.Nsec, a.st.Mtime.Nsec),
		cmp.Compare(a.path, b.path),
	)
}

// aside is 1 for what programs keep for themselves, else 0.
func aside(path string) int {
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case strings.HasPrefix(part, "."), part == "__pycache__", part == "node_modules":
			return 1
		}
	}
	return 0
}
