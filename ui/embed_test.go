package ui

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestPage(t *testing.T) {
	if files, ok := page(fstest.MapFS{"dist/.gitkeep": {}}); ok || files != nil {
		t.Errorf("page of a tree that was not built = %v, %v; want nil, false", files, ok)
	}
	files, ok := page(fstest.MapFS{"dist/index.html": {Data: []byte("<!doctype html>")}})
	if !ok {
		t.Fatal("page of a built tree is not there")
	}
	if b, err := fs.ReadFile(files, "index.html"); err != nil || string(b) != "<!doctype html>" {
		t.Errorf("index.html = %q, %v", b, err)
	}
}

func TestEmbeddedTreeExists(t *testing.T) {
	if _, err := fs.Stat(dist, "dist"); err != nil {
		t.Errorf("the embedded tree: %v", err)
	}
}
