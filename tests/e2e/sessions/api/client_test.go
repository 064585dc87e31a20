// Package api_test uses sessions of the running product over HTTP, and holds
// every response to the OpenAPI document.
package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
	"github.com/preheat-dev/preheat/tests/product"
)

var (
	shared   *product.Product
	document *openapi.Document
)

func TestMain(m *testing.M) {
	var err error
	if document, err = openapi.Parse(execution.OpenAPI()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(product.Main(m, &shared))
}

// patience is how long a test waits for what has to happen.
const patience = time.Minute

// fromEnvironment is a number that a longer run of the tests sets.
func fromEnvironment(t *testing.T, name string, standard int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// response is an answer with its whole body.
type response struct {
	*http.Response
	body string
}

// send sends a request and checks what comes back against the document.
func send(ctx context.Context, p *product.Product, method, path string, body io.Reader, header ...string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.URL+path, body)
	if err != nil {
		return response{}, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", execution.MediaJSON)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}, err
	}
	return response{res, string(text)}, document.CheckResponse(method, path, res, text)
}

// do is send of which nothing may go wrong.
func do(t *testing.T, p *product.Product, method, path, body string, header ...string) response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	res, err := send(ctx, p, method, path, strings.NewReader(body), header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

// problem checks that a response is a problem of this kind, and returns it.
func problem(t *testing.T, res response, kind execution.ProblemType) execution.Problem {
	t.Helper()
	var p execution.Problem
	if err := json.Unmarshal([]byte(res.body), &p); err != nil || !p.IsKind(kind) {
		t.Errorf("%s instead of %s: %s", res.Status, kind, res.body)
	}
	return p
}

// session is an open session, which the test's end closes.
type session struct {
	t    *testing.T
	p    *product.Product
	path string
	execution.Session
}

func open(t *testing.T, p *product.Product, request string) *session {
	t.Helper()
	res := do(t, p, "POST", "/v1/sessions", request)
	s := &session{t: t, p: p}
	if err := json.Unmarshal([]byte(res.body), &s.Session); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", res.Status, res.body)
	}
	s.path = res.Header.Get("Location")
	t.Cleanup(func() {
		req, err := http.NewRequest(http.MethodDelete, p.URL+s.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil { // the product may have ended
			_ = res.Body.Close()
		}
	})
	return s
}

// python is a request for a session of Python.
const python = `{"language":"python"}`

// request is the JSON of a request to run code.
func request(code string, limits string) string {
	text, err := json.Marshal(code)
	if err != nil {
		panic(err) // of a string there is none
	}
	return fmt.Sprintf(`{"code":%s,"limits":{%s}}`, text, limits)
}

// run runs code, which must be served.
func (s *session) run(code string) execution.SessionResult {
	s.t.Helper()
	return s.runWithin(code, "")
}

// runWithin is run with limits.
func (s *session) runWithin(code, limits string) execution.SessionResult {
	s.t.Helper()
	res := do(s.t, s.p, "POST", s.path+"/execute", request(code, limits))
	var r execution.SessionResult
	if err := json.Unmarshal([]byte(res.body), &r); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", res.Status, res.body)
	}
	return r
}

// prints runs code and checks what it prints and what it had of the runs before.
func (s *session) prints(code, want string, state execution.SessionState) {
	s.t.Helper()
	if r := s.run(code); r.Stdout != want || r.State != state || r.Status != execution.StatusSucceeded {
		s.t.Errorf("%s: %s, %q instead of %q, %s instead of %s: %s", code, r.Status, r.Stdout, want, r.State, state, r.Stderr)
	}
}

// begin runs code in the background, and returns when it runs.
func (s *session) begin(code string) <-chan response {
	s.t.Helper()
	ended := make(chan response, 1)
	go func() { // received by the test, or over when its session ends
		res, err := send(s.t.Context(), s.p, "POST", s.path+"/execute", strings.NewReader(request(code, "")))
		if err != nil {
			res.body = err.Error()
		}
		ended <- res
	}()
	s.eventually("the program runs", func() bool { return s.describe().Running != nil })
	return ended
}

// describe is the session as it is now.
func (s *session) describe() execution.Session {
	s.t.Helper()
	var d execution.Session
	res := do(s.t, s.p, "GET", s.path, "")
	if err := json.Unmarshal([]byte(res.body), &d); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", res.Status, res.body)
	}
	return d
}

func (s *session) eventually(what string, so func() bool) {
	s.t.Helper()
	product.Eventually(s.t, patience, what, so)
}

// ends waits until the session is over for a reason.
func (s *session) ends(reason execution.SessionEnd) {
	s.t.Helper()
	var res response
	s.eventually("the session ends", func() bool {
		res = do(s.t, s.p, "GET", s.path, "")
		return res.StatusCode != http.StatusOK
	})
	if p := problem(s.t, res, execution.ProblemSessionEnded); p.Reason != reason {
		s.t.Errorf("the reason is %s, not %s", p.Reason, reason)
	}
}
