package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	var images []Image
	for _, name := range []string{"first", "second"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("program "+name), 0o755); err != nil {
			t.Fatal(err)
		}
		images = append(images, Image{Name: "dev.local/test/" + name + ":1", Program: path})
	}
	var out bytes.Buffer
	if err := Write(&out, images...); err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		checkImage(t, out.Bytes(), image)
	}
}

func checkImage(t *testing.T, archive []byte, want Image) {
	t.Helper()
	tag, err := name.NewTag(want.Name)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }, &tag)
	if err != nil {
		t.Fatalf("%s: %v", want.Name, err)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("%s: %v", want.Name, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Base(want.Program)
	if got := config.Config; len(got.Entrypoint) != 1 || got.Entrypoint[0] != "/"+program || got.User != "65532" {
		t.Errorf("%s runs %v as %s", want.Name, got.Entrypoint, got.User)
	}
	if got := fileIn(t, mutate.Extract(image), program); got != "program "+program {
		t.Errorf("the program of %s is %q", want.Name, got)
	}
}

func fileIn(t *testing.T, r io.ReadCloser, name string) string {
	t.Helper()
	defer r.Close()
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Name == name {
			content, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(content)
		}
	}
}

func TestWriteWithoutTheProgram(t *testing.T) {
	err := Write(io.Discard, Image{Name: "dev.local/test/none:1", Program: filepath.Join(t.TempDir(), "none")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}
