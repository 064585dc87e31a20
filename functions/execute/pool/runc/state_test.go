package runc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folders makes each folder with its mode, in a folder of the test.
func folders(t *testing.T, modes ...os.FileMode) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		path = filepath.Join(path, "d")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// What others could have put into the state folder would become containers.
func TestStateFolderOfOthers(t *testing.T) {
	sticky := os.ModeSticky | 0o777
	for _, test := range []struct {
		name  string
		modes []os.FileMode
		want  string
	}{
		{"one's own", []os.FileMode{0o711}, ""},
		{"one's own, readable", []os.FileMode{0o755}, ""},
		{"in a sticky folder", []os.FileMode{sticky, 0o700}, ""},
		{"writable by all", []os.FileMode{0o777}, "can be written by other users"},
		{"writable by the group", []os.FileMode{0o770}, "can be written by other users"},
		{"sticky", []os.FileMode{sticky}, "can be written by other users"},
		{"in a folder that is writable", []os.FileMode{0o777, 0o700}, "can be written by other users"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := folders(t, test.modes...)
			got, err := makeStateDir(path)
			switch {
			case test.want == "" && (err != nil || got != path):
				t.Errorf("%q, %v", got, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "PREHEAT_STATE_DIR")):
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("of another user", func(t *testing.T) {
		path := folders(t, 0o711)
		if err := checkOwner(path, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "belongs to user") {
			t.Errorf("the error is %v", err)
		}
		if err := checkOwner(filepath.Join(path, "absent"), os.Geteuid()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the error is %v", err)
		}
	})
}
