// Package console sends what the Test action of the OpenShift console sends
// when execute is the function to test, byte for byte, and looks at the answer
// as the console's page does.
//
// The page posts to the console's server, which sends an event with the
// CloudEvents SDK for Go, or a plain request, to the URL of the Knative
// Service (github.com/openshift/console, pkg/knative/handler.go). In an event
// the page has type and source swapped, and the data is a JSON string. The
// files of testdata are what the same calls of the SDK and of net/http put on
// the wire, for the program of a user and for the message that the page offers:
//
//	UPDATE=1 go test ./tests/e2e/console
package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/openapi"
	"github.com/preheat-dev/preheat/tests/product"
)

// host is of the Knative Service's URL.
const host = "execute.llm-sandbox-demo.svc.cluster.local"

var shared *product.Product

func TestMain(m *testing.M) { os.Exit(product.Main(m, &shared, "PREHEAT_ALLOWED_HOSTS="+host)) }

// What the page offers, and what a user types in its place.
const (
	offered = `{"message": "Hello World!"}`
	typed   = "{\n  \"language\": \"python\",\n  \"code\": \"print('Hello from a sandbox!')\"\n}"
)

// sendEvent sends as the console's server does in the format CloudEvent.
func sendEvent(ctx context.Context, rt http.RoundTripper, message string) error {
	e := cloudevents.NewEvent()
	e.SetSource("boson.fn")
	e.SetType("/boson/fn")
	if err := e.SetData(execution.MediaJSON, message); err != nil {
		return err
	}
	c, err := cloudevents.NewClientHTTP(cloudevents.WithTarget("http://"+host), cloudevents.WithRoundTripper(rt))
	if err != nil {
		return err
	}
	_, result := c.Request(ctx, e)
	if cloudevents.IsUndelivered(result) {
		return result
	}
	return nil
}

// sendPlain sends as it does in the format HTTP.
func sendPlain(ctx context.Context, rt http.RoundTripper, message string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host, strings.NewReader(message))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Content-Type": execution.MediaJSON, "type": "boson.fn", "source": "/boson/fn"} {
		req.Header.Add(name, value)
	}
	res, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// recorded is what send puts on the wire.
func recorded(t *testing.T, send func(context.Context, http.RoundTripper, string) error, message string) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	wire := make(chan []byte, 1)
	go func() {
		defer close(wire)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		var seen bytes.Buffer
		req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &seen)))
		if err == nil {
			_, err = io.Copy(io.Discard, req.Body)
		}
		if err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
		if err == nil {
			wire <- seen.Bytes()
		}
	}()
	to := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
	}}
	defer to.CloseIdleConnections()
	if err := send(t.Context(), to, message); err != nil {
		t.Fatal(err)
	}
	return <-wire
}

// The files are what the console's server sends, but for ids and times.
func TestRecordings(t *testing.T) {
	changing := regexp.MustCompile(`(?m)^Ce-(Id|Time): .*\r$`)
	for name, r := range map[string]struct {
		send    func(context.Context, http.RoundTripper, string) error
		message string
	}{
		"event": {sendEvent, typed}, "event-offered": {sendEvent, offered}, "plain": {sendPlain, typed}, "plain-offered": {sendPlain, offered},
	} {
		got := recorded(t, r.send, r.message)
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(path(name), got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := recording(t, name); !bytes.Equal(changing.ReplaceAll(got, nil), changing.ReplaceAll(want, nil)) {
			t.Errorf("%s: %q\ninstead of\n%q", name, got, want)
		}
	}
}

func path(name string) string { return filepath.Join("testdata", name+".http") }

func recording(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(path(name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// replay sends a recording and returns the answer.
func replay(t *testing.T, name string) (*http.Response, []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(shared.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(recording(t, name)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodPost})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi.Parse(execution.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := document.CheckResponse(http.MethodPost, "/", res, body); err != nil {
		t.Error(err)
	}
	return res, body
}

// shown is what the page shows.
type shown struct {
	status int
	header map[string]string
	body   string
}

// shownEvent is what the page shows of an answer to an event: attributes as
// headers and data as the body, or an error where the answer is no event.
func shownEvent(t *testing.T, res *http.Response, body []byte) shown {
	t.Helper()
	e, err := binding.ToEvent(t.Context(), cehttp.NewMessage(res.Header, io.NopCloser(bytes.NewReader(body))))
	if err != nil {
		return shown{status: http.StatusInternalServerError, body: err.Error()}
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Specversion, ID, Source, Type, Datacontenttype, Time string
		Data                                                 any
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(read.Data)
	if err != nil {
		t.Fatal(err)
	}
	return shown{http.StatusOK, map[string]string{
		"Content-Type": read.Datacontenttype, "ID": read.ID, "Spec-Version": read.Specversion, "Source": read.Source, "Type": read.Type, "Date": read.Time,
	}, string(data)}
}

func checkResult(t *testing.T, body string) {
	t.Helper()
	var r execution.Result
	if err := json.Unmarshal([]byte(body), &r); err != nil || r.Stdout != "Hello from a sandbox!\n" || r.Status != execution.StatusSucceeded || r.SandboxName == "" {
		t.Errorf("%s, %v", body, err)
	}
}

// CASES.md W5: in the format CloudEvent the page shows the completed event.
func TestW5CloudEvent(t *testing.T) {
	res, body := replay(t, "event")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", res.StatusCode, body)
	}
	got := shownEvent(t, res, body)
	if got.status != http.StatusOK || got.header["Type"] != execution.TypeCompleted || got.header["Content-Type"] != execution.MediaJSON || got.header["Spec-Version"] != "1.0" {
		t.Errorf("the page shows %+v", got)
	}
	for name, value := range got.header {
		if value == "" {
			t.Errorf("the page shows no %s", name)
		}
	}
	checkResult(t, got.body)
}

// CASES.md W5: in the format HTTP it shows the status, the headers and the
// result as JSON.
func TestW5PlainHTTP(t *testing.T) {
	res, body := replay(t, "plain")
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != execution.MediaJSON || res.Header.Get("X-Request-Id") == "" {
		t.Errorf("status %d, %v", res.StatusCode, res.Header)
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Ce-") {
			t.Errorf("an event answers what was none: %s", name)
		}
	}
	checkResult(t, string(body))
}

// CASES.md W5: the message that the page offers is no program. The answer says
// so, as JSON for the page to show within JSON, and is no event.
func TestW5OfferedMessage(t *testing.T) {
	for _, name := range []string{"event-offered", "plain-offered"} {
		res, body := replay(t, name)
		var page struct {
			Error execution.Problem `json:"error"`
		}
		if err := json.Unmarshal([]byte(`{ "error": `+string(body)+` }`), &page); err != nil {
			t.Errorf("%s: %v in %s", name, err, body)
		}
		if res.StatusCode != http.StatusUnprocessableEntity || page.Error.Status != res.StatusCode || page.Error.Field != "message" {
			t.Errorf("%s: status %d: %s", name, res.StatusCode, body)
		}
		if got := shownEvent(t, res, body); got.status != http.StatusInternalServerError {
			t.Errorf("%s: the page shows %+v", name, got)
		}
	}
}
