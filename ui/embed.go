// Package ui holds the web page, as files that npm run build made. The
// program also builds without them; it then has no page.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// FS returns the page's files, with index.html at the root, and whether the
// page was built before the program was.
func FS() (fs.FS, bool) { return page(dist) }

func page(built fs.FS) (fs.FS, bool) {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		return nil, false
	}
	if info, err := fs.Stat(files, "index.html"); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	return files, true
}
