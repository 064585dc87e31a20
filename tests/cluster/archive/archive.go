// Package archive puts static programs into images, one program each on an
// empty base, and writes them as one archive in the format that containerd and
// Docker import.
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// user runs the programs, and owns nothing.
const user = 65532

// Image is an image to write. Its program is the entry point.
type Image struct {
	// Name is its reference with a tag.
	Name string
	// Program is the path of the program's file.
	Program string
}

type (
	config struct {
		Architecture string        `json:"architecture"`
		OS           string        `json:"os"`
		Config       runtimeConfig `json:"config"`
		RootFS       rootFS        `json:"rootfs"`
	}
	runtimeConfig struct {
		User       string
		Env        []string
		Entrypoint []string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
)

// Write writes an archive of images to w.
func Write(w io.Writer, images ...Image) error {
	archive := tar.NewWriter(w)
	var manifest []entry
	for _, image := range images {
		e, err := add(archive, image)
		if err != nil {
			return fmt.Errorf("write image %s: %w", image.Name, err)
		}
		manifest = append(manifest, e)
	}
	if err := addJSON(archive, "manifest.json", manifest); err != nil {
		return err
	}
	return archive.Close()
}

func add(archive *tar.Writer, image Image) (entry, error) {
	// A first pass over the layer finds its digest and size.
	digest := sha256.New()
	size, err := layer(digest, image.Program)
	if err != nil {
		return entry{}, err
	}
	id := hex.EncodeToString(digest.Sum(nil))
	e := entry{Config: id + ".json", RepoTags: []string{image.Name}, Layers: []string{id + ".tar"}}
	if err := archive.WriteHeader(&tar.Header{Name: e.Layers[0], Mode: 0o644, Size: size}); err != nil {
		return entry{}, err
	}
	if _, err := layer(archive, image.Program); err != nil {
		return entry{}, err
	}
	return e, addJSON(archive, e.Config, config{
		Architecture: runtime.GOARCH, OS: "linux",
		Config: runtimeConfig{
			User: strconv.Itoa(user), Env: []string{"PATH=/", "HOME=/tmp"},
			Entrypoint: []string{"/" + filepath.Base(image.Program)},
		},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + id}},
	})
}

// layer writes a file system with a program and a place for temporary files.
func layer(w io.Writer, program string) (size int64, err error) {
	f, err := os.Open(program)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	counted := &counter{w: w}
	t := tar.NewWriter(counted)
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return 0, err
	}
	if err := t.WriteHeader(&tar.Header{Name: filepath.Base(program), Mode: 0o755, Size: info.Size()}); err != nil {
		return 0, err
	}
	if _, err := io.Copy(t, f); err != nil {
		return 0, err
	}
	err = t.Close()
	return counted.n, err
}

func addJSON(archive *tar.Writer, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err = archive.Write(data)
	return err
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
