package runner

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/preheat-dev/preheat/functions/runner/artifact"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// uploadPrefix begins the names of files on their way into a session's folder.
const uploadPrefix = ".preheat-upload-"

var errNoFile = &wire.Failure{Code: wire.FailureNoFile, Detail: "there is no such file", Field: "path"}

// operateOnFiles carries out what op wants of the session's files. Links are
// followed inside of the session's folder, and nothing is found outside of it.
func (s *session) operateOnFiles(conn *steady, server *wire.Server, op wire.Operation) error {
	switch op.Kind {
	case wire.OperationList:
		return s.listFiles(server, op.Max)
	case wire.OperationRead:
		return s.readFile(server, op)
	case wire.OperationArchive:
		return s.archive(server, op.Path)
	case wire.OperationWrite:
		conn.receiving = true
		return s.writeFile(server, op.Path)
	case wire.OperationRemove:
		return s.removeFile(server, op.Path)
	}
	return &wire.Failure{Code: wire.FailureVersion, Detail: fmt.Sprintf("the runner knows no operation %.20q", op.Kind)}
}

func (s *session) listFiles(server *wire.Server, most int) error {
	files, more, err := artifact.List(s.runner.config.WorkDir, most, func(path string) bool {
		// What is no UTF-8 has no path by which a caller could have it.
		return !strings.HasPrefix(path, uploadPrefix) && utf8.ValidString(path)
	})
	if err != nil {
		return err
	}
	for _, path := range files {
		info, err := s.root.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue // a program has changed it meanwhile
		}
		if err := server.File(describeFile(path, info)); err != nil {
			return err
		}
	}
	return server.Reply(wire.Reply{More: more})
}

// describeFile is the state of a file. Its tag is made of what changes with
// its content, as the web's servers do: to hash it, it would have to be read.
func describeFile(path string, info fs.FileInfo) wire.SessionFile {
	f := wire.SessionFile{Path: path, Size: info.Size(), Modified: info.ModTime()}
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	f.ETag = fmt.Sprintf(`"%x-%x-%x"`, inode, f.Size, f.Modified.UnixNano())
	return f
}

// open opens a regular file.
func (s *session) open(path string) (*os.File, fs.FileInfo, error) {
	f, err := s.root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fileError(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &invalidError{field: "path", err: fmt.Errorf("%q is not a regular file", path)}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// fileError is what the error of a file operation is to the caller: paths are
// the caller's, and so is what is at them.
func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoFile
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return &invalidError{field: "path", err: errors.New("there is no room left in the session's folder")}
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the path is not always the caller's
	}
	return &invalidError{field: "path", err: err}
}

func (s *session) readFile(server *wire.Server, op wire.Operation) error {
	f, info, err := s.open(op.Path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	offset := min(max(op.Offset, 0), info.Size())
	size := info.Size() - offset
	if op.Length >= 0 {
		size = min(size, op.Length)
	}
	if err := server.File(describeFile(op.Path, info)); err != nil {
		return err
	}
	// An error is said in place of the end; the connection tells of all others.
	_ = server.Send(io.NewSectionReader(f, offset, size), size)
	return nil
}

func (s *session) writeFile(server *wire.Server, name string) error {
	if dir := path.Dir(name); dir != "." {
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return fileError(err)
		}
	}
	temporary := uploadPrefix + rand.Text()
	f, err := s.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fileError(err)
	}
	defer func() { _ = s.root.Remove(temporary) }() // in vain once it has its name
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, server.Received(), make([]byte, 32<<10))
	info, statErr := f.Stat()
	if err := errors.Join(err, statErr, f.Close()); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return fileError(err)
		}
		return err
	}
	before, err := s.root.Lstat(name)
	created := errors.Is(err, fs.ErrNotExist)
	if err == nil && before.IsDir() {
		return &invalidError{field: "path", err: fmt.Errorf("%q is a folder", name)}
	}
	if err := s.root.Rename(temporary, name); err != nil {
		return fileError(err)
	}
	if err := server.File(describeFile(name, info)); err != nil {
		return err
	}
	return server.Reply(wire.Reply{Created: created})
}

func (s *session) removeFile(server *wire.Server, name string) error {
	if name == "" || name == "." {
		return &invalidError{field: "path", err: errors.New("the folder itself cannot be removed")}
	}
	if _, err := s.root.Lstat(name); err != nil {
		return fileError(err)
	}
	if err := s.root.RemoveAll(name); err != nil {
		return fileError(err)
	}
	return server.Reply(wire.Reply{})
}

// archive sends a folder as a tar archive: its folders and regular files.
func (s *session) archive(server *wire.Server, name string) error {
	if name == "" {
		name = "."
	}
	info, err := s.root.Stat(name)
	if err != nil {
		return fileError(err)
	}
	if !info.IsDir() {
		return &invalidError{field: "path", err: fmt.Errorf("%q is not a folder", name)}
	}
	w := tar.NewWriter(server.ContentWriter())
	err = fs.WalkDir(s.root.FS(), name, func(at string, entry fs.DirEntry, err error) error {
		inside := strings.TrimPrefix(strings.TrimPrefix(at, name), "/")
		if err != nil || inside == "" || strings.HasPrefix(at, uploadPrefix) {
			return err
		}
		return s.addTo(w, at, inside, entry)
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return server.EndItem(wire.Unreadable)
	}
	return server.EndItem("")
}

// addTo adds what is at a path to an archive, by the name inside.
func (s *session) addTo(w *tar.Writer, at, inside string, entry fs.DirEntry) error {
	if entry.IsDir() {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: inside + "/", Mode: 0o755})
	}
	if !entry.Type().IsRegular() {
		return nil
	}
	f, info, err := s.open(at)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	header := &tar.Header{Typeflag: tar.TypeReg, Name: inside, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.CopyN(w, f, info.Size())
	return err
}
