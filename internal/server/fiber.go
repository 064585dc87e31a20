package server

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// defaultType is what fasthttp calls a body of which the handler says nothing.
const defaultType = "text/plain; charset=utf-8"

// errForeign is of a handler whose app was not made by this package.
var errForeign = errors.New("the app was not made by this package")

type localKey struct{}

func exchangeOf(c *fiber.Ctx) *exchange {
	x, _ := c.Locals(localKey{}).(*exchange)
	return x
}

// HTTPHandler returns h as a handler of fiber. It gets the request and the
// response writer of net/http, so that what it writes is not held back, and is
// part of an exchange as all handlers are: its request's context is Context's,
// its body bounded, its panic a problem.
func HTTPHandler(h http.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		return Native(c, func(w http.ResponseWriter, r *http.Request) error {
			h.ServeHTTP(w, r)
			return nil
		})
	}
}

// Native answers c by h, as HTTPHandler does. An error before anything was sent
// becomes a problem; after that the response is cut, so that the client can tell
// it from a complete one. h runs after the handler returned: it must not touch c.
func Native(c *fiber.Ctx, h func(http.ResponseWriter, *http.Request) error) error {
	x := exchangeOf(c)
	if x == nil {
		return errForeign
	}
	x.native = h
	return nil
}

// Handle serves all methods of a path of fiber's form by h, see HTTPHandler.
func (s *Server) Handle(path string, h http.Handler) { s.app.All(path, HTTPHandler(h)) }

// route runs fiber's handlers. What they leave to others is in x after it, and
// what they answer themselves was written.
func (x *exchange) route() error {
	if !slices.Contains(fiber.DefaultMethods, x.request.Method) {
		return plain(http.StatusNotImplemented, "The method is not known.")
	}
	f := x.server.contexts.Get().(*fasthttp.RequestCtx)
	f.Init2(x.conn, x.server.web.ErrorLog, true)
	x.fillRequest(&f.Request)
	f.SetUserValue(localKey{}, x)
	x.server.routes(f)
	// After a panic f is not used again.
	defer x.server.release(f)
	if x.response.wrote {
		return x.err // by Encode
	}
	x.copyHead(&f.Response, x.native == nil)
	if x.err != nil || x.native != nil {
		return x.err
	}
	x.response.status = f.Response.StatusCode()
	if x.produce != nil {
		return nil
	}
	return x.copyBody(&f.Response)
}

func (s *Server) release(f *fasthttp.RequestCtx) {
	f.ResetUserValues()
	f.Request.Reset()
	f.Response.Reset()
	s.contexts.Put(f)
}

func (x *exchange) fillRequest(to *fasthttp.Request) {
	r := x.request
	h := &to.Header
	h.SetMethod(r.Method)
	h.SetProtocol(r.Proto)
	to.SetRequestURI(r.RequestURI)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			h.Add(name, value)
		}
	}
	h.SetHost(r.Host)
	if r.ContentLength > 0 {
		h.SetContentLength(int(r.ContentLength))
	}
}

// copyHead adds the header of fiber's response to the exchange's.
func (x *exchange) copyHead(from *fasthttp.Response, hasBody bool) {
	h := x.response.Header()
	ours := func(name, value []byte) bool {
		switch string(name) {
		case fiber.HeaderContentLength, fiber.HeaderTransferEncoding, fiber.HeaderDate, fiber.HeaderServer:
			return true // net/http's own
		case fiber.HeaderContentType:
			// It is there though nobody set it.
			empty := len(from.Body()) == 0 && x.produce == nil && x.response.sent == 0
			return string(value) == defaultType && (empty || !hasBody)
		}
		return false
	}
	from.Header.VisitAll(func(name, value []byte) {
		if !ours(name, value) {
			h.Del(string(name))
		}
	})
	from.Header.VisitAll(func(name, value []byte) {
		if !ours(name, value) {
			h.Add(string(name), string(value))
		}
	})
	if hasBody && h.Get(fiber.HeaderContentType) == "" {
		h[fiber.HeaderContentType] = nil // do not guess
	}
}

func (x *exchange) copyBody(from *fasthttp.Response) error {
	w := x.response
	if from.IsBodyStream() {
		w.WriteHeader(w.status)
		if x.request.Method == http.MethodHead {
			return nil
		}
		_, err := io.Copy(flushed{w}, from.BodyStream())
		return err
	}
	body := from.Body()
	if bodyAllowed(w.status) {
		w.Header().Set(fiber.HeaderContentLength, string(fasthttp.AppendUint(nil, len(body))))
	}
	w.WriteHeader(w.status)
	if len(body) == 0 || !bodyAllowed(w.status) {
		return nil
	}
	if _, err := io.Copy(w, bytes.NewReader(body)); err != nil {
		x.cancel(ErrPeerGone)
	}
	return nil
}

func bodyAllowed(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}
