package server

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What passes the check is a request to net/http, too, which therefore never
// answers in our place; and both see the same end of its body.
func FuzzHead(f *testing.F) {
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /a?b#c HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\n\r\nhello",
		"POST http://a.b:1/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
		"OPTIONS * HTTP/1.0\r\nX: \xe9\t\r\nExpect: 100-continue\r\n\r\n",
		"GET //a/%2f HTTP/1.1\r\nHost: !$&'()*+,;=%41~\r\n\r\n",
		"GET http://[fe80::1%25a]/ HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n",
		"GET / HTTP/1.1\r\nHost:\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end, r := scanHead([]byte(text), 0)
		if r != nil || end == 0 || end > maxHead {
			return
		}
		frame, r := parseHead(text[:end])
		if r != nil {
			return
		}
		rest := strings.NewReader(text)
		br := bufio.NewReader(rest)
		req, err := http.ReadRequest(br)
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", text[:end], err)
		}
		read, err := io.Copy(io.Discard, req.Body)
		n, broken := frame.advance([]byte(text[end:]))
		if err != nil {
			return // the connection closes
		}
		if broken != nil {
			return // so it does here
		}
		if left := rest.Len() + br.Buffered(); !frame.done() || len(text)-end-n != left {
			t.Errorf("%q: net/http leaves %d bytes after a body of %d, framing %d (%+v)", text, left, read, len(text)-end-n, frame)
		}
	})
}

// A head's end is found however its bytes come.
func TestScanHead(t *testing.T) {
	const head = "GET / HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\r\n"
	for first := range len(head) {
		end, r := scanHead([]byte(head[:first]), 0)
		if end != 0 || r != nil {
			t.Fatalf("%q: %d, %v", head[:first], end, r)
		}
		if end, r := scanHead([]byte(head+"GET"), first); end != len(head) || r != nil {
			t.Fatalf("after %d bytes: %d, %v", first, end, r)
		}
	}
}
