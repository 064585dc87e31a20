package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/internal/server"
)

// raw is a request as bytes, in which each line ends as it says.
type raw struct {
	name, section, text string
	// status of the answers, in order. After one of 400 or more that says so
	// the connection closes; otherwise it takes another request.
	status []int
	closes bool
}

func lines(l ...string) string { return strings.Join(l, "\r\n") + "\r\n\r\n" }

// with returns a POST with further header lines, and what follows its head.
func with(body string, header ...string) string {
	return lines(append([]string{"POST /echo HTTP/1.1", "Host: localhost"}, header...)...) + body
}

func refusals(status int, section string, requests map[string]string) []raw {
	var all []raw
	for name, text := range requests {
		all = append(all, raw{name, section, text, []int{status}, true})
	}
	return all
}

const chunkedHeader = "Transfer-Encoding: chunked"

func rawRequests() []raw {
	five := "5\r\nhello\r\n0\r\n\r\n"
	all := []raw{
		{"GET", "9112 3", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{200}, false},
		{"HTTP/1.0 without Host", "9112 3.2", "GET / HTTP/1.0\r\n\r\n", []int{403}, true},
		{"HTTP/1.0 with Host", "9112 3.2", "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", []int{200}, true},
		{"an empty line before", "9112 2.2", "\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{200}, false},
		{"absolute target, Host is ignored", "9112 3.2.2", "GET http://localhost/ HTTP/1.1\r\nHost: evil\r\n\r\n", []int{200}, false},
		{"absolute target of another host", "9112 3.2.2", "GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{403}, false},
		{"two slashes are a path", "9112 3.2.1", "GET //evil/path HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{404}, false},
		{"OPTIONS of the server", "9112 3.2.4", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{404}, false},
		{"length", "9112 6.2", with("hello", "Content-Length: 5"), []int{200}, false},
		{"length of nothing", "9112 6.2", with("", "Content-Length: 0"), []int{200}, false},
		{"chunks", "9112 7.1", with(five, chunkedHeader), []int{200}, false},
		{"chunks, capitals", "9112 7", with(five, "Transfer-Encoding: CHUNKED"), []int{200}, false},
		{"chunk extensions", "9112 7.1.1", with("5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n", chunkedHeader), []int{200}, false},
		{"chunk size with zeros", "9112 7.1", with("0005\r\nhello\r\n000\r\n\r\n", chunkedHeader), []int{200}, false},
		{"trailer", "9112 7.1.2", with("5\r\nhello\r\n0\r\nX: y\r\n\r\n", chunkedHeader), []int{200}, false},
		{"100-continue", "9110 10.1.1", with("hello", "Content-Length: 5", "Expect: 100-continue"), []int{100, 200}, false},
		{"value with tab and high bytes", "9110 5.5", with("", "X: a\tb\xe9"), []int{200}, false},
		{"empty value", "9110 5.5", with("", "X:"), []int{200}, false},
		{"no space after the colon", "9112 5", with("", "X:y"), []int{200}, false},
		{"repeated field", "9110 5.3", with("", "X: a", "X: b"), []int{200}, false},
		{"h2c is ignored", "9110 7.8", with("", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"), []int{200}, false},
		{"websocket is ignored", "9110 7.8", lines("GET / HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"), []int{200}, false},
		{"method override is ignored", "9110 9", lines("GET / HTTP/1.1", "Host: localhost", "X-HTTP-Method-Override: DELETE"), []int{200}, false},
		{"pipelined", "9112 9.3.2", with("hello", "Content-Length: 5") + with(five, chunkedHeader) + get("/"), []int{200, 200, 200}, false},
		{"GET with a body, pipelined", "9110 9.3.1", "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello" + get("/"), []int{200, 200}, false},
		{"a bad one after a good one", "9112 9.3.2", get("/") + "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", []int{200, 400}, true},
		{"a good one after a bad one", "9112 9.3.2", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + get("/"), []int{400}, true},
		{"smuggled behind two lengths", "9112 6.3", with("GET /s HTTP/1.1\r\nHost: localhost\r\n\r\n", "Content-Length: 36", "Content-Length: 0"), []int{400}, true},
		{"200 fields", "9110 5.4", with("", strings.Split(strings.Repeat("X: y\n", 200), "\n")[:200]...), []int{200}, false},
	}
	all = append(all, refusals(400, "9112 6.3", map[string]string{
		"length and chunked":         with("0\r\n\r\n", "Content-Length: 5", chunkedHeader),
		"chunked and length":         with("0\r\n\r\n", chunkedHeader, "Content-Length: 5"),
		"length 0 and chunked":       with("0\r\n\r\n", "Content-Length: 0", chunkedHeader),
		"differing lengths":          with("hello", "Content-Length: 5", "Content-Length: 6"),
		"equal lengths":              with("hello", "Content-Length: 5", "Content-Length: 5"),
		"list of lengths":            with("hello", "Content-Length: 5, 5"),
		"length with sign":           with("hello", "Content-Length: +5"),
		"negative length":            with("hello", "Content-Length: -5"),
		"hexadecimal length":         with("hello", "Content-Length: 0x5"),
		"length with a space inside": with("hello", "Content-Length: 1 0"),
		"length with underscore":     with("hello", "Content-Length: 1_0"),
		"empty length":               with("hello", "Content-Length:"),
		"length beyond 63 bits":      with("hello", "Content-Length: 9223372036854775808"),
		"length beyond 64 bits":      with("hello", "Content-Length: 18446744073709551621"),
		"xchunked":                   with(five, "Transfer-Encoding: xchunked"),
		"chunked twice":              with(five, "Transfer-Encoding: chunked, chunked"),
		"chunked before gzip":        with(five, "Transfer-Encoding: chunked, gzip"),
		"identity":                   with("hello", "Transfer-Encoding: identity"),
		"empty coding":               with(five, "Transfer-Encoding:"),
		"chunked and nothing":        with(five, "Transfer-Encoding: chunked,"),
		"vertical tab and chunked":   with(five, "Transfer-Encoding: \x0bchunked"),
		"two lines of codings":       with(five, chunkedHeader, chunkedHeader),
		"identity in a second line":  with(five, chunkedHeader, "Transfer-Encoding: identity"),
		"quoted chunked":             with(five, `Transfer-Encoding: "chunked"`),
		"parameter of chunked":       with(five, "Transfer-Encoding: chunked;q=1"),
	})...)
	all = append(all, refusals(501, "9112 6.1", map[string]string{
		"gzip, chunked":     with(five, "Transfer-Encoding: gzip, chunked"),
		"identity, chunked": with(five, "Transfer-Encoding: identity, chunked"),
		"nothing, chunked":  with(five, "Transfer-Encoding: , chunked"),
	})...)
	all = append(all, refusals(400, "9112 6.1", map[string]string{
		"chunked in HTTP/1.0": lines("POST /echo HTTP/1.0", "Host: localhost", chunkedHeader) + five,
	})...)
	all = append(all, refusals(400, "9112 2.2", map[string]string{
		"bare LF everywhere":           "GET / HTTP/1.1\nHost: localhost\n\n",
		"bare LF after the first line": "GET / HTTP/1.1\nHost: localhost\r\n\r\n",
		"bare LF after a field":        "GET / HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
		"bare LF at the end":           "GET / HTTP/1.1\r\nHost: localhost\r\n\n",
		"bare CR in a value":           with("", "X: a\rb"),
		"bare CR in the first line":    "GET /\r HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"CR CR LF":                     "GET / HTTP/1.1\r\r\nHost: localhost\r\n\r\n",
		"space before the first field": "GET / HTTP/1.1\r\n X: y\r\nHost: localhost\r\n\r\n",
		"NUL in a value":               with("", "X: a\x00b"),
		"NUL in a name":                with("", "X\x00: b"),
		"space before the method":      " GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"TLS":                          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	})...)
	all = append(all, refusals(400, "9112 5", map[string]string{
		"empty name":              with("", ": x"),
		"space before the colon":  with(five, "Transfer-Encoding : chunked"),
		"space in a name":         with("", "X Y: z"),
		"no colon":                with("", "X"),
		"folded":                  with("", "X: a", " b"),
		"folded by a tab":         with("", "X: a", "\tb"),
		"colon of a folded one":   with("", "X: a", " Content-Length: 5"),
		"bracket in a name":       with("", "X[]: a"),
		"high byte in a name":     with("", "X\xe9: a"),
		"control in a value":      with("", "X: a\x01b"),
		"DEL in a value":          with("", "X: a\x7fb"),
		"escape in the last line": with("", "X: \x1b[2J"),
	})...)
	all = append(all, refusals(400, "9112 3.2", map[string]string{
		"no Host":                        "GET / HTTP/1.1\r\n\r\n",
		"two Hosts, the good one first":  "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
		"two Hosts, the good one last":   "GET / HTTP/1.1\r\nHost: evil\r\nHost: localhost\r\n\r\n",
		"two equal Hosts":                "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
		"user in Host":                   "GET / HTTP/1.1\r\nHost: evil@127.0.0.1:8080\r\n\r\n",
		"path in Host":                   "GET / HTTP/1.1\r\nHost: localhost/evil\r\n\r\n",
		"two ports":                      "GET / HTTP/1.1\r\nHost: localhost:80:80\r\n\r\n",
		"port of letters":                "GET / HTTP/1.1\r\nHost: localhost:http\r\n\r\n",
		"port without host":              "GET / HTTP/1.1\r\nHost: :80\r\n\r\n",
		"list of hosts":                  "GET / HTTP/1.1\r\nHost: localhost evil\r\n\r\n",
		"query in Host":                  "GET / HTTP/1.1\r\nHost: localhost?\r\n\r\n",
		"open bracket in Host":           "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
		"address in brackets is no IPv6": "GET / HTTP/1.1\r\nHost: [127.0.0.1]\r\n\r\n",
		"user in an absolute target":     "GET http://evil@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	})...)
	all = append(all, refusals(400, "9112 3", map[string]string{
		"HTTP/0.9":                  "GET /\r\n\r\n",
		"two spaces":                "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"tab":                       "GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"space in the target":       "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"space at the end":          "GET / HTTP/1.1 \r\nHost: localhost\r\n\r\n",
		"method of other bytes":     "G(T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"relative target":           "GET index.html HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"target with high bytes":    "GET /\xe9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"target with a broken %":    "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"target of another scheme":  "GET ftp://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"target * for GET":          "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"version in small letters":  "GET / http/1.1\r\nHost: localhost\r\n\r\n",
		"version with more digits":  "GET / HTTP/1.10\r\nHost: localhost\r\n\r\n",
		"version without a point":   "GET / HTTP/11\r\nHost: localhost\r\n\r\n",
		"nothing but an empty line": "\r\n\r\n",
	})...)
	all = append(all, refusals(505, "9110 15.6.6", map[string]string{
		"HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/1.2":       "GET / HTTP/1.2\r\nHost: localhost\r\n\r\n",
		"HTTP/3.0":       "GET / HTTP/3.0\r\nHost: localhost\r\n\r\n",
	})...)
	all = append(all, refusals(501, "9110 9.3.6", map[string]string{
		"CONNECT": "CONNECT evil:443 HTTP/1.1\r\nHost: evil:443\r\n\r\n",
	})...)
	all = append(all, raw{"unknown method", "9110 9.1", "BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{501}, false},
		raw{"method in small letters", "9110 9.1", "get / HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{501}, false},
		raw{"TRACE", "9110 9.3.8", "TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{405}, false})
	all = append(all, refusals(417, "9110 10.1.1", map[string]string{
		"unknown expectation": with("hello", "Content-Length: 5", "Expect: a-pony"),
		"two expectations":    with("hello", "Content-Length: 5", "Expect: 100-continue", "Expect: a-pony"),
		"empty expectation":   with("hello", "Content-Length: 5", "Expect:"),
	})...)
	all = append(all, refusals(431, "6585 5", map[string]string{
		"header of 20 KiB": with("", "X: "+strings.Repeat("x", 20<<10)),
		"2000 fields":      with("", strings.Split(strings.Repeat("X: some\n", 3000), "\n")[:3000]...),
	})...)
	all = append(all, refusals(414, "9112 3", map[string]string{
		"target of 20 KiB": "GET /" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	})...)
	all = append(all, refusals(413, "9110 15.5.14", map[string]string{
		"length beyond the limit, unsent":   with("", "Content-Length: 10000000"),
		"chunk beyond the limit, unsent":    with("989680\r\n", chunkedHeader),
		"second chunk beyond it, unsent":    with("5\r\nhello\r\n3ffffc\r\n", chunkedHeader),
		"chunk beyond the limit, and begun": with("989680\r\nhello", chunkedHeader),
	})...)
	return append(all, refusals(400, "9112 7.1", map[string]string{
		"chunk size with sign":         with("+5\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk size with 0x":           with("0x5\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk size of nothing":        with("\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk size with space before": with(" 5\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		// The RFC lets recipients take this one; net/http does not.
		"chunk size with space after":   with("5 ;a\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk size beyond 64 bits":     with("10000000000000005\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk size and bare LF":        with("5\nhello\r\n0\r\n\r\n", chunkedHeader),
		"bare LF in a chunk extension":  with("5;a\nhello\r\n0\r\n\r\n", chunkedHeader),
		"bare CR in a chunk extension":  with("5;a\rb\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk longer than its size":    with("4\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk shorter than its size":   with("6\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"chunk that ends in LF":         with("5\r\nhello\n0\r\n\r\n", chunkedHeader),
		"long chunk extension":          with("5;"+strings.Repeat("x", 10<<10)+"\r\nhello\r\n0\r\n\r\n", chunkedHeader),
		"long trailer":                  with("0\r\nX: "+strings.Repeat("x", 10<<10)+"\r\n\r\n", chunkedHeader),
		"trailer line that ends in LF":  with("0\r\nX: y\n\r\n", chunkedHeader),
		"trailer line without a colon":  with("0\r\nXy\r\n\r\n", chunkedHeader),
		"negative chunk size":           with("-1\r\n\r\n0\r\n\r\n", chunkedHeader),
		"smuggled behind a broken size": with("5g\r\nhello\r\n0\r\n\r\n"+get("/"), chunkedHeader),
	})...)
}

// Each request that another server could take for something else is refused
// with a problem, and its connection closes; the others are served. Sections
// are those of RFC 9110, 9112 and 6585.
func TestRawRequests(t *testing.T) {
	r := serve(t, server.Config{HeaderTimeout: patience, BodyTimeout: patience}, func(app *fiber.App) {
		app.Get("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
		app.Post("/echo", func(c *fiber.Ctx) error {
			body, err := server.Body(c)
			if err != nil {
				return err
			}
			return c.Send(body)
		})
	})
	all := rawRequests()
	if len(all) < 80 {
		t.Fatalf("%d requests", len(all))
	}
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, r.addr, tt.text)
			br := bufio.NewReader(c)
			for _, want := range tt.status {
				if got := answer(t, br); got != want {
					t.Fatalf("RFC %s: status %d, want %d", tt.section, got, want)
				}
			}
			if !tt.closes {
				if _, err := io.WriteString(c, get("/")); err != nil {
					t.Fatal(err)
				}
				if got := answer(t, br); got != http.StatusOK {
					t.Errorf("the next request: %d", got)
				}
				return
			}
			if b, err := br.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after the answer: %q, %v", b, err)
			}
		})
	}
}

// answer reads a response, and checks that an error is a problem.
func answer(t *testing.T, br *bufio.Reader) int {
	t.Helper()
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= 400 {
		problem(t, res, body)
	}
	return res.StatusCode
}

// A request is the same however its bytes come.
func TestRequestsInPieces(t *testing.T) {
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Post("/echo", func(c *fiber.Ctx) error {
			body, err := server.Body(c)
			if err != nil {
				return err
			}
			return c.Send(body)
		})
	})
	text := with("hello", "Content-Length: 5") + with("3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nA: b\r\n\r\n", chunkedHeader) +
		with("hello", "Content-Length: 5")
	for size := 1; size < 40; size += 3 {
		c := dial(t, r.addr, "")
		_ = c.SetNoDelay(true)
		go func() {
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := io.WriteString(c, rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		br := bufio.NewReader(c)
		for i := range 3 {
			res, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatalf("pieces of %d bytes, answer %d: %v", size, i, err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || string(body) != "hello" {
				t.Fatalf("pieces of %d bytes, answer %d: %q, %v", size, i, body, err)
			}
		}
	}
}

// A client that closed its half before its body was complete gets the answer.
func TestTruncatedBodies(t *testing.T) {
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Post("/echo", func(c *fiber.Ctx) error {
			_, err := server.Body(c)
			return err
		})
	})
	for _, text := range []string{
		with("hello", "Content-Length: 6"), with("5\r\nhello\r\n", chunkedHeader), with("5\r\nhel", chunkedHeader), with("", chunkedHeader),
	} {
		c := dial(t, r.addr, text)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got := answer(t, bufio.NewReader(c)); got != http.StatusBadRequest {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// A connection beyond the limit is answered, and there is room again when
// another one ends.
func TestTooManyConnections(t *testing.T) {
	r := serve(t, server.Config{Connections: 2}, func(app *fiber.App) {
		app.Get("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
	})
	var held []net.Conn
	for range 2 {
		c := dial(t, r.addr, get("/"))
		if got := answer(t, bufio.NewReader(c)); got != http.StatusOK {
			t.Fatalf("within the limit: %d", got)
		}
		held = append(held, c)
	}
	c := dial(t, r.addr, get("/"))
	br := bufio.NewReader(c)
	if got := answer(t, br); got != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: %d", got)
	}
	if _, err := br.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the answer: %v", err)
	}
	held[0].Close()
	for end := time.Now().Add(patience); ; {
		c := dial(t, r.addr, get("/"))
		if answer(t, bufio.NewReader(c)) == http.StatusOK {
			return
		}
		c.Close()
		if time.Now().After(end) {
			t.Fatal("there is no room again")
		}
	}
}

// The rest of a small body that no handler asked for is read, so that its
// connection serves on.
func TestBodyThatNobodyReads(t *testing.T) {
	r := serve(t, server.Config{}, func(app *fiber.App) {
		app.Post("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
	})
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", 100<<10)
	c := dial(t, r.addr, head)
	br := bufio.NewReader(c)
	for range 3 {
		if got := answer(t, br); got != http.StatusOK {
			t.Fatalf("before the body came: %d", got)
		}
		if _, err := io.WriteString(c, strings.Repeat("x", 100<<10)+head); err != nil {
			t.Fatal(err)
		}
	}
}
