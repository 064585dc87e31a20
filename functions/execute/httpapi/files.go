package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute"
	"github.com/preheat-dev/preheat/functions/runner/artifact"
	"github.com/preheat-dev/preheat/internal/server"
)

// listFiles answers GET /v1/sessions/ID/files.
func listFiles(c *fiber.Ctx, s *execute.Session) error {
	if server.WantsArchive(c) {
		return sendArchive(c, s, "")
	}
	list, err := s.Files(server.Context(c))
	if err != nil {
		return err
	}
	return c.JSON(list)
}

// filePath is the path of a file that c's URL names.
func filePath(c *fiber.Ctx, root bool) (string, error) {
	p, problem := execution.SessionPath(c.Params("*"), root)
	if problem != nil {
		return "", problem
	}
	return p, nil
}

// getFile answers GET and HEAD /v1/sessions/ID/files/PATH.
func (a *API) getFile(c *fiber.Ctx, s *execute.Session) error {
	archive := server.WantsArchive(c)
	p, err := filePath(c, archive)
	switch {
	case err != nil:
		return err
	case archive:
		return sendArchive(c, s, p)
	}
	ctx := server.Context(c)
	f, _, err := open(ctx, s, p, 0, 0)
	if err != nil {
		return err
	}
	return server.Native(c, func(w http.ResponseWriter, r *http.Request) error {
		setFileHeaders(w.Header(), path.Base(p), artifact.MIME(p))
		w.Header().Set("ETag", f.ETag)
		content := &lazyFile{ctx: ctx, session: s, file: f}
		defer content.close()
		answer := &problemWriter{ResponseWriter: w}
		http.ServeContent(answer, r, "", f.ModifiedAt, content)
		if content.err != nil {
			return content.err
		}
		return answer.problem()
	})
}

// setFileHeaders makes a browser keep what a program wrote away from the page's
// origin: it is saved, not shown, and where it is shown all the same it has an
// origin of its own and no scripts.
func setFileHeaders(h http.Header, name, media string) {
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

// sendArchive answers with a tar archive of a folder.
func sendArchive(c *fiber.Ctx, s *execute.Session, folder string) error {
	ctx := server.Context(c)
	archive, err := s.Archive(ctx, folder)
	if err != nil {
		return err
	}
	return server.Native(c, func(w http.ResponseWriter, r *http.Request) error {
		defer archive.Close()
		name := "files.tar"
		if folder != "" {
			name = path.Base(folder) + ".tar"
		}
		setFileHeaders(w.Header(), name, execution.MediaTar)
		if r.Method == http.MethodHead {
			return nil
		}
		if _, err := io.Copy(w, archive); err != nil {
			return fmt.Errorf("send the archive: %w", err)
		}
		return nil
	})
}

func open(ctx context.Context, s *execute.Session, p string, offset, length int64) (execution.SessionFile, io.ReadCloser, error) {
	f, content, err := s.Open(ctx, p, offset, length)
	if err == nil && length == 0 {
		_ = content.Close() // nothing was asked for
	}
	return f, content, err
}

// errChanged cuts the answer: a part of one file and a part of another one are
// neither.
var errChanged = errors.New("the file has changed while it was sent")

// lazyFile reads a file of a session from where it is asked to. err is why it
// could not.
type lazyFile struct {
	ctx     context.Context
	session *execute.Session
	file    execution.SessionFile
	at      int64
	content io.ReadCloser
	err     error
}

// Seek implements io.Seeker.
func (l *lazyFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += l.at
	case io.SeekEnd:
		offset += l.file.Size
	}
	if offset != l.at {
		l.close()
	}
	l.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (l *lazyFile) Read(p []byte) (int, error) {
	if l.at >= l.file.Size {
		return 0, io.EOF
	}
	if l.content == nil {
		f, content, err := open(l.ctx, l.session, l.file.Path, l.at, -1)
		if err == nil && f.ETag != l.file.ETag {
			_ = content.Close()
			err = errChanged
		}
		if err != nil {
			l.err = err
			return 0, err
		}
		l.content = content
	}
	n, err := l.content.Read(p)
	l.at += int64(n)
	if errors.Is(err, io.EOF) && l.at < l.file.Size {
		err = errChanged
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}

func (l *lazyFile) close() {
	if l.content != nil {
		_ = l.content.Close()
		l.content = nil
	}
}

// problemWriter holds an error of net/http back, which is text, so that it
// can be a problem.
type problemWriter struct {
	http.ResponseWriter
	refused int
}

// WriteHeader implements http.ResponseWriter.
func (w *problemWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.refused = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *problemWriter) Write(p []byte) (int, error) {
	if w.refused != 0 {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

func (w *problemWriter) problem() error {
	switch w.refused {
	case 0:
		return nil
	case http.StatusPreconditionFailed:
		return changed()
	}
	h := w.Header()
	for _, name := range []string{"Content-Disposition", "Last-Modified", "ETag"} {
		h.Del(name)
	}
	return execution.NewProblem(execution.ProblemRange, "The file has nothing in the range %s.", h.Get("Content-Range"))
}

func changed() error {
	return execution.NewProblem(execution.ProblemPrecondition, "The file is not as If-Match or If-None-Match has it.")
}

// putFile answers PUT /v1/sessions/ID/files/PATH.
func (a *API) putFile(c *fiber.Ctx, s *execute.Session) error {
	p, err := filePath(c, false)
	if err != nil {
		return err
	}
	if coding := c.Get(fiber.HeaderContentEncoding); coding != "" && !strings.EqualFold(coding, "identity") {
		return execution.NewProblem(execution.ProblemUnsupportedMedia, "The content coding %q is not supported: send the file as it is.", coding)
	}
	if c.Get("Content-Range") != "" {
		return execution.NewProblem(execution.ProblemMalformed, "A file is sent whole: Content-Range has no meaning here.")
	}
	if err := precondition(c, s, p); err != nil {
		return err
	}
	body, err := server.StreamBody(c, a.executor.Limits().Sessions.FileBytes)
	if err != nil {
		return err
	}
	f, created, err := s.Write(server.Context(c), p, body)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderETag, f.ETag)
	if created {
		c.Status(http.StatusCreated)
		return nil
	}
	c.Status(http.StatusNoContent)
	return nil
}

// precondition checks If-Match and If-None-Match before a file is written. What
// the session's own program writes meanwhile it cannot see.
func precondition(c *fiber.Ctx, s *execute.Session, p string) error {
	match, none := c.Get(fiber.HeaderIfMatch), c.Get(fiber.HeaderIfNoneMatch)
	if match == "" && none == "" {
		return nil
	}
	f, _, err := open(server.Context(c), s, p, 0, 0)
	var problem *execution.Problem
	exists := err == nil
	if err != nil && (!errors.As(err, &problem) || !problem.IsKind(execution.ProblemNotFound)) {
		return err
	}
	if match != "" && !(exists && lists(match, f.ETag)) || none != "" && exists && lists(none, f.ETag) {
		return changed()
	}
	return nil
}

// lists reports whether a list of entity tags has one.
func lists(list, tag string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if each = strings.TrimSpace(each); each == "*" || strings.TrimPrefix(each, "W/") == tag {
			return true
		}
	}
	return false
}

// removeFile answers DELETE /v1/sessions/ID/files/PATH.
func removeFile(c *fiber.Ctx, s *execute.Session) error {
	p, err := filePath(c, false)
	if err != nil {
		return err
	}
	if err := s.Remove(server.Context(c), p); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
