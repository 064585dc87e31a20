package relay

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

// Sessions sends requests about sessions on and gives the answers back. Files
// stream through it in both directions.
type Sessions struct {
	// URL is the base URL of whoever serves sessions.
	URL string
	// Client sends requests that can be sent again, Uploads those that cannot: it
	// must use each connection once, since one that is closed just then would
	// fail them.
	Client, Uploads *http.Client
	// Deadline is that of executions.
	Deadline *Deadline
	// RefusalLimit bounds what may be said of a request that is refused, in
	// bytes.
	RefusalLimit int64
	// Prepare, if not nil, adds to a request what f's has.
	Prepare func(f *fiber.Ctx, req *http.Request)
}

// Register adds the routes of sessions to r.
func (s *Sessions) Register(r fiber.Router) {
	const one = "/v1/sessions/:id"
	r.Post("/v1/sessions", s.awaited)
	r.Get("/v1/sessions", s.serve)
	r.Get(one, s.serve)
	r.Delete(one, s.serve)
	r.Post(one+"/execute", s.awaited)
	r.Post(one+"/interrupt", s.serve)
	r.Get(one+"/files", s.serve)
	r.Get(one+"/files/*", s.serve)
	r.Put(one+"/files/*", s.upload)
	r.Delete(one+"/files/*", s.serve)
}

// sessionTarget is the path that f names, written in one way only: whatever
// stands between resolves it to the same session and file.
func sessionTarget(f *fiber.Ctx) (string, error) {
	route, id := f.Route().Path, f.Params("id")
	if id != "" && !execution.IsSessionID(id) {
		return "", execution.NewProblem(execution.ProblemNotFound, "There is no such session.")
	}
	target := url.URL{Path: strings.Replace(route, ":id", id, 1)}
	if folder, ok := strings.CutSuffix(target.Path, "*"); ok {
		path, problem := execution.SessionPath(f.Params("*"), server.WantsArchive(f))
		if problem != nil {
			return "", problem
		}
		target.Path = folder + path
	}
	target.RawQuery = string(f.Context().URI().QueryString())
	return target.String(), nil
}

// newRequest is f's request as it is sent on.
func (s *Sessions) newRequest(f *fiber.Ctx, w *Watchdog, body io.Reader) (*http.Request, error) {
	target, err := sessionTarget(f)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(w.Context(), f.Method(), strings.TrimSuffix(s.URL, "/")+target, body)
	if err != nil {
		return nil, err
	}
	SetHeaders(f, req, fiber.HeaderContentType, fiber.HeaderContentEncoding, fiber.HeaderContentRange, fiber.HeaderAccept, execution.HeaderLastEventID,
		fiber.HeaderRange, fiber.HeaderIfRange, fiber.HeaderIfMatch, fiber.HeaderIfNoneMatch, fiber.HeaderIfModifiedSince, fiber.HeaderIfUnmodifiedSince)
	SetTraceHeaders(f, req)
	if s.Prepare != nil {
		s.Prepare(f, req)
	}
	return req, nil
}

// serve sends on what is answered at once.
func (s *Sessions) serve(f *fiber.Ctx) error {
	w := NewWatchdog(server.Context(f))
	req, err := s.newRequest(f, w, nil)
	if err != nil {
		w.Stop()
		return err
	}
	w.Expect(Silence)
	res, err := s.Client.Do(req)
	return s.answer(f, w, res, err)
}

// awaited sends on what waits for a sandbox or runs a program.
func (s *Sessions) awaited(f *fiber.Ctx) error {
	if err := server.RequireJSON(f); err != nil {
		return err
	}
	limits := execution.DefaultLimits() // nothing configures body_bytes
	body, err := server.BodyWithin(f, limits.BodyBytes, limits.BodyTooLarge())
	if err != nil {
		return err
	}
	w := NewWatchdog(server.Context(f))
	req, err := s.newRequest(f, w, bytes.NewReader(body))
	if err != nil {
		w.Stop()
		return err
	}
	res, err := s.Deadline.Await(w, func() (*http.Response, error) { return s.Client.Do(req) })
	return s.answer(f, w, res, err)
}

// unbounded is a limit for bodies of which nothing is kept: who gets them
// bounds them.
const unbounded = 1 << 62

// upload sends a file on while it comes.
func (s *Sessions) upload(f *fiber.Ctx) error {
	content, err := server.StreamBody(f, unbounded)
	if err != nil {
		return err
	}
	w := NewWatchdog(server.Context(f))
	body := &uploaded{Watchdog: w, r: content}
	req, err := s.newRequest(f, w, body)
	if err != nil {
		w.Stop()
		return err
	}
	req.ContentLength = -1
	if n, err := strconv.ParseInt(f.Get(fiber.HeaderContentLength), 10, 64); err == nil {
		req.ContentLength = n
	}
	if req.ContentLength == 0 {
		req.Body = http.NoBody
	} else {
		// What is refused by its path or its preconditions is not sent at all.
		req.Header.Set(fiber.HeaderExpect, "100-continue")
	}
	w.Expect(Silence)
	res, err := s.Uploads.Do(req)
	if err != nil && body.err != nil {
		w.Stop()
		return body.err
	}
	return s.answer(f, w, res, err)
}

// uploaded is a file that a client sends. While the client is waited for,
// nothing is expected of the server.
type uploaded struct {
	*Watchdog
	r io.Reader
	// err is why the client's content broke off.
	err error
}

// Read implements io.Reader.
func (u *uploaded) Read(p []byte) (int, error) {
	u.timer.Stop()
	n, err := u.r.Read(p)
	u.Expect(Silence)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
	}
	return n, err
}

// Close implements io.Closer.
func (*uploaded) Close() error { return nil }

// answer gives an answer back as it comes.
func (s *Sessions) answer(f *fiber.Ctx, w *Watchdog, res *http.Response, err error) error {
	if err != nil {
		defer w.Stop()
		return sessionUnanswered(f, w.Explain(err))
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get(fiber.HeaderContentType))
	switch {
	case res.StatusCode == http.StatusOK && media == execution.MediaSSE:
		return sessionRun(f, w, res)
	case res.StatusCode >= http.StatusBadRequest && f.Method() != fiber.MethodHead:
		return s.refusal(f, w, res, media)
	}
	return server.Native(f, func(to http.ResponseWriter, _ *http.Request) error {
		defer w.Stop()
		defer res.Body.Close()
		for _, name := range sessionHeaders {
			if v := res.Header.Get(name); v != "" {
				to.Header().Set(name, v)
			}
		}
		to.WriteHeader(res.StatusCode)
		_, err := io.Copy(to, w.reader(res.Body, Silence))
		return err
	})
}

// sessionHeaders are the headers of answers that are given back.
var sessionHeaders = []string{
	"Content-Type", "Content-Length", "Content-Range", "Content-Disposition", "Content-Security-Policy", "X-Content-Type-Options",
	"Accept-Ranges", "Cache-Control", "ETag", "Last-Modified", "Location", "Allow", "Retry-After",
}

func (s *Sessions) refusal(f *fiber.Ctx, w *Watchdog, res *http.Response, media string) error {
	defer w.Stop()
	defer res.Body.Close()
	body, err := w.ReadAll(res.Body, Silence, s.RefusalLimit)
	if err != nil {
		return sessionUnanswered(f, err)
	}
	for _, name := range []string{fiber.HeaderContentRange, fiber.HeaderAllow} {
		if v := res.Header.Get(name); v != "" {
			f.Set(name, v)
		}
	}
	return Refusal(f, res, media, body)
}

func sessionUnanswered(f *fiber.Ctx, err error) error {
	if IsCallers(err) {
		return err
	}
	server.Logger(server.Context(f)).Warn("a request about a session was not answered", "error", Redact(err))
	return ExecutionProblem(err)
}

// NewUploads returns a client like c for Sessions.Uploads.
func NewUploads(t *http.Transport) *http.Client {
	own := t.Clone()
	own.DisableKeepAlives = true
	own.ExpectContinueTimeout = continueTimeout
	return &http.Client{Transport: own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// continueTimeout is how long a file waits for the server to want it: for a
// server that knows nothing of that.
const continueTimeout = 5 * time.Second
