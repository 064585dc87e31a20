// Package contract holds the running product to its OpenAPI document: each
// route, each status that can be provoked, each event of a stream. A response
// that the document does not describe fails.
package contract

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat"
	"github.com/preheat-dev/preheat/functions/execute/cloudevent"
	"github.com/preheat-dev/preheat/functions/execute/httpapi"
	"github.com/preheat-dev/preheat/internal/server"
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

const (
	pathExecute = "/v1/sandbox/execute"
	accept      = "Accept"
	contentType = "Content-Type"
)

// do sends a request, with a host of its own where header names one, and
// checks the response.
func do(t *testing.T, p *product.Product, method, path string, body io.Reader, header ...string) (*http.Response, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v after %.500q", method, path, err, got)
	}
	if err := document.CheckResponse(method, path, res, got); err != nil {
		t.Error(err)
	}
	return res, got
}

// post is do for a JSON body, and fails unless the status is as given.
func post(t *testing.T, p *product.Product, status int, path, body string, header ...string) (*http.Response, []byte) {
	t.Helper()
	res, got := do(t, p, http.MethodPost, path, strings.NewReader(body), append([]string{contentType, execution.MediaJSON}, header...)...)
	if res.StatusCode != status {
		t.Fatalf("status %d instead of %d: %.500s", res.StatusCode, status, got)
	}
	return res, got
}

// Every route that the functions register is an operation of the document, and
// the other way round.
func TestRoutesAreOperations(t *testing.T) {
	app := fiber.New()
	api := httpapi.New(nil, nil, prometheus.NewRegistry())
	api.Register(app)
	events := cloudevent.New(cloudevent.Options{API: api})
	events.RegisterExecute(app)
	events.Register(app)
	config, err := chat.ConfigFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	chatFunction, err := chat.New(chat.Options{Config: config, Forward: true})
	if err != nil {
		t.Fatal(err)
	}
	chatFunction.Register(app)
	server.Documents(app)
	var routes []string
	for _, r := range app.GetRoutes(true) {
		if r.Method != fiber.MethodHead {
			routes = append(routes, r.Method+" "+strings.NewReplacer("/models/*", "/models/{id}", ":id", "{id}", "/files/*", "/files/{path}").Replace(r.Path))
		}
	}
	slices.Sort(routes)
	routes = slices.Compact(routes)
	operations := document.Operations()
	slices.Sort(operations)
	if !slices.Equal(routes, operations) {
		t.Errorf("routes %q\noperations %q", routes, operations)
	}
}

func TestReads(t *testing.T) {
	for _, path := range []string{
		"/", "/v1/languages", "/v1/limits", "/v1/pools", "/v1/services", "/v1/models", "/v1/chat/status", "/openapi.yaml", "/openapi.json", "/asyncapi.yaml", "/healthz", "/readyz", "/metrics",
	} {
		res, body := do(t, shared, http.MethodGet, path, nil)
		if res.StatusCode != http.StatusOK || len(body) == 0 {
			t.Errorf("%s: status %d, %d bytes", path, res.StatusCode, len(body))
		}
		if want := map[string][]byte{"/openapi.yaml": execution.OpenAPI(), "/openapi.json": execution.ToolsAPI(), "/asyncapi.yaml": execution.AsyncAPI()}[path]; want != nil && !bytes.Equal(body, want) {
			t.Errorf("%s: another document is served", path)
		}
		if res, _ := do(t, shared, http.MethodHead, path, nil); res.StatusCode != http.StatusOK {
			t.Errorf("HEAD %s: status %d", path, res.StatusCode)
		}
	}
	res, _ := do(t, shared, http.MethodGet, "/", nil)
	if res, body := do(t, shared, http.MethodGet, "/", nil, "If-None-Match", res.Header.Get("Etag")); res.StatusCode != http.StatusNotModified || len(body) > 0 {
		t.Errorf("a page that is known already: status %d", res.StatusCode)
	}
	do(t, shared, http.MethodGet, "/metrics", nil, accept, "application/openmetrics-text; version=1.0.0")
}

// A request's id is in the response and in every problem; one that cannot be
// an id is replaced.
func TestRequestID(t *testing.T) {
	for id, kept := range map[string]bool{"my-id_1.2:3": true, "a b": false, strings.Repeat("x", 129): false, "é": false} {
		res, body := post(t, shared, 422, pathExecute, `{}`, "X-Request-Id", id)
		got := res.Header.Get("X-Request-Id")
		if (got == id) != kept {
			t.Errorf("%q became %q", id, got)
		}
		if !bytes.Contains(body, []byte(`"request_id":"`+got+`"`)) {
			t.Errorf("%s does not name %s", body, got)
		}
	}
}

// The stream of the pools tells of a run, and goes on until it is left.
func TestPoolsStream(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, shared.URL+"/v1/pools", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(accept, execution.MediaSSE)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var body []byte
	for ran := false; bytes.Count(body, []byte("\n\n")) < 3; {
		piece := make([]byte, 64<<10)
		n, err := res.Body.Read(piece)
		if err != nil {
			t.Fatalf("%v after %s", err, body)
		}
		body = append(body, piece[:n]...)
		if !ran {
			ran = true
			shared.Python(t, "1")
		}
	}
	body = body[:bytes.LastIndex(body, []byte("\n\n"))+2]
	if err := document.CheckResponse(http.MethodGet, "/v1/pools", res, body); err != nil {
		t.Error(err)
	}
}
