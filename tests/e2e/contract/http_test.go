package contract

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
)

// TestHTTP10Streams: a stream over HTTP/1.0 is the events as they are, ended by
// the connection's end.
func TestHTTP10Streams(t *testing.T) {
	const program = `{"language":"bash","code":"echo one; echo two >&2"}`
	answer := shared.RawText(t, false, fmt.Sprintf("POST %s HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n%s",
		pathExecute, len(program), program))
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.0 200 ") || strings.Contains(head, "Transfer-Encoding") || strings.Contains(strings.ToLower(head), "keep-alive") {
		t.Errorf("the head is %s", head)
	}
	var names []string
	for frame := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		fields := strings.Split(frame, "\n")
		if len(fields) != 3 || fields[0] != fmt.Sprintf("id: %d", len(names)+1) {
			t.Fatalf("the frame %q", frame)
		}
		name, ok := strings.CutPrefix(fields[1], "event: ")
		text, has := strings.CutPrefix(fields[2], "data: ")
		if !ok || !has || !json.Valid([]byte(text)) {
			t.Errorf("the frame %q", frame)
		}
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "start stdout stderr exit" || !strings.HasSuffix(body, "\n\n") {
		t.Errorf("%s of %q", got, body)
	}
}

// TestEveryRefusalIsAProblem: also those that come before any route, and that to
// a client that has closed its side have a problem document and an id.
func TestEveryRefusalIsAProblem(t *testing.T) {
	const slow = `{"language":"bash","code":"sleep 60"}`
	for name, test := range map[string]struct {
		request string
		half    bool
		status  int
	}{
		"unknown method":      {"BREW " + pathExecute + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", false, 501},
		"method in lowercase": {"post " + pathExecute + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", false, 501},
		"no Host":             {"GET /v1/limits HTTP/1.1\r\n\r\n", false, 400},
		"no Host in HTTP/1.0": {"GET /v1/limits HTTP/1.0\r\n\r\n", false, 403},
		"half closed": {fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			pathExecute, len(slow), slow), true, 499},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(shared.RawText(t, test.half, test.request))), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			var p execution.Problem
			if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != test.status || p.Status != test.status || p.Title == "" || p.Detail == "" {
				t.Errorf("status %d: %+v", res.StatusCode, p)
			}
			if id := res.Header.Get("X-Request-Id"); res.Header.Get("Content-Type") != execution.MediaProblem || id == "" || p.RequestID != id {
				t.Errorf("header %v, request id %q", res.Header, p.RequestID)
			}
		})
	}
}
