package product

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rawPatience bounds an exchange about whose length nothing is asserted.
const rawPatience = time.Minute

// Raw sends bytes, ends its side of the connection where end says so, and
// returns the response. There is none if the server ended the connection
// without one.
func (p *Product) Raw(t *testing.T, end bool, text string) (*http.Response, []byte) {
	t.Helper()
	conn := p.send(t, end, text)
	defer func() { _ = conn.Close() }()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, nil
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// RawText is Raw for a response that ends with its connection, and returns it as
// it came.
func (p *Product) RawText(t *testing.T, end bool, text string) string {
	t.Helper()
	conn := p.send(t, end, text)
	defer func() { _ = conn.Close() }()
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// send sends bytes over a connection of their own, which the caller closes.
func (p *Product) send(t *testing.T, end bool, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(rawPatience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if end {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}
