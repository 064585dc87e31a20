package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func files(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

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
	all := files(t, &out)
	var manifest []entry
	if err := json.Unmarshal(all["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 2 {
		t.Fatalf("the manifest is %+v", manifest)
	}
	for i, e := range manifest {
		if e.RepoTags[0] != images[i].Name {
			t.Errorf("image %d is named %v", i, e.RepoTags)
		}
		var c config
		if err := json.Unmarshal(all[e.Config], &c); err != nil {
			t.Fatal(err)
		}
		layer := all[e.Layers[0]]
		digest := sha256.Sum256(layer)
		if want := "sha256:" + hex.EncodeToString(digest[:]); c.RootFS.DiffIDs[0] != want {
			t.Errorf("the layer is %s, its configuration says %s", want, c.RootFS.DiffIDs[0])
		}
		name := filepath.Base(images[i].Program)
		if c.Config.Entrypoint[0] != "/"+name || c.Config.User != "65532" {
			t.Errorf("it runs %v as %s", c.Config.Entrypoint, c.Config.User)
		}
		if got := string(files(t, bytes.NewReader(layer))[name]); got != "program "+name {
			t.Errorf("the program is %q", got)
		}
	}
}

func TestWriteWithoutTheProgram(t *testing.T) {
	err := Write(io.Discard, Image{Name: "dev.local/test/none:1", Program: filepath.Join(t.TempDir(), "none")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}
