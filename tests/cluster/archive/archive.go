// Package archive puts static programs into images, one program each on an
// empty base, and writes them as one archive in the format that containerd and
// Docker import.
package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// user runs the programs, and owns nothing.
const user = "65532"

// Image is an image to write. Its program is the entry point.
type Image struct {
	// Name is its reference with a tag.
	Name string
	// Program is the path of the program's file.
	Program string
}

// Write writes an archive of images to w.
func Write(w io.Writer, images ...Image) error {
	byTag := map[name.Tag]v1.Image{}
	for _, image := range images {
		tag, err := name.NewTag(image.Name)
		if err != nil {
			return fmt.Errorf("name image %s: %w", image.Name, err)
		}
		if byTag[tag], err = build(image.Program); err != nil {
			return fmt.Errorf("build image %s: %w", image.Name, err)
		}
	}
	return tarball.MultiWrite(byTag, w)
}

func build(program string) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(files(w, program)) }()
		return r, nil
	}, tarball.WithCompression(compression.None))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{User: user, Env: []string{"PATH=/", "HOME=/tmp"}, Entrypoint: []string{"/" + filepath.Base(program)}}
	return mutate.ConfigFile(image, config)
}

// files writes a file system with a program and a place for temporary files.
func files(w io.Writer, program string) error {
	f, err := os.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: filepath.Base(program), Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	if _, err := io.Copy(t, f); err != nil {
		return err
	}
	return t.Close()
}
