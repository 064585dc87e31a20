package server

import (
	"bytes"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxHead bounds a request's line and header together.
const maxHead = 16 << 10

// refusal is why a request's head is not taken.
type refusal struct {
	status int
	detail string
}

func malformed(detail string) *refusal { return &refusal{http.StatusBadRequest, detail} }

// scanHead looks for the end of a head in b, of which the first from bytes
// were scanned before. It returns the head's length, or 0 while it is
// incomplete. Lines end in CRLF and nothing else (RFC 9112, 2.2): another
// server might take a bare CR or LF for something else than this one does.
func scanHead(b []byte, from int) (int, *refusal) {
	if len(b) > 0 && !httpguts.IsTokenRune(rune(b[0])) {
		return 0, malformed("The request does not begin with a method.")
	}
	for i := from; i < len(b); i++ {
		switch b[i] {
		case '\n':
			if i == 0 || b[i-1] != '\r' {
				return 0, malformed("A line of the head ends in a bare LF.")
			}
			if i >= 3 && b[i-2] == '\n' {
				return i + 1, nil
			}
		case 0:
			return 0, malformed("The head contains NUL.")
		default:
			if i > 0 && b[i-1] == '\r' {
				return 0, malformed("The head contains a bare CR.")
			}
		}
	}
	return 0, nil
}

// tooLong is the refusal of a head without an end within maxHead.
func tooLong(b []byte) *refusal {
	if !bytes.Contains(b, []byte("\r\n")) {
		return &refusal{http.StatusRequestURITooLong, "The request's target is too long."}
	}
	return &refusal{http.StatusRequestHeaderFieldsTooLarge, "The request's header exceeds " + strconv.Itoa(maxHead) + " bytes."}
}

// parseHead checks a head, with its empty line, and returns how the request's
// body is framed. It is at least as strict as net/http, which parses the head
// after it, and refuses all that another server could understand otherwise.
func parseHead(raw string) (framing, *refusal) {
	line, rest, _ := strings.Cut(raw, "\r\n")
	l, r := parseRequestLine(line)
	if r != nil {
		return framing{}, r
	}
	var f fields
	for rest != "\r\n" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		if r := f.add(line); r != nil {
			return framing{}, r
		}
	}
	return f.frame(l)
}

type requestLine struct{ http10 bool }

func parseRequestLine(line string) (requestLine, *refusal) {
	method, rest, _ := strings.Cut(line, " ")
	target, version, ok := strings.Cut(rest, " ")
	if !ok || !httpguts.ValidHeaderFieldName(method) {
		return requestLine{}, malformed("The request line is not of the form METHOD TARGET HTTP/1.1.")
	}
	switch version {
	case "HTTP/1.1", "HTTP/1.0":
	default:
		if len(version) == len("HTTP/1.1") && strings.HasPrefix(version, "HTTP/") &&
			digit(version[5]) && version[6] == '.' && digit(version[7]) {
			return requestLine{}, &refusal{http.StatusHTTPVersionNotSupported, "Only HTTP/1.1 and HTTP/1.0 are supported."}
		}
		return requestLine{}, malformed("The request line names no version of HTTP.")
	}
	if method == http.MethodConnect {
		return requestLine{}, &refusal{http.StatusNotImplemented, "This server is no proxy."}
	}
	if !validTarget(method, target) {
		return requestLine{}, malformed("The request's target is not valid.")
	}
	return requestLine{http10: version == "HTTP/1.0"}, nil
}

// validTarget takes the forms of RFC 9112, 3.2, but for CONNECT's.
func validTarget(method, target string) bool {
	for _, b := range []byte(target) {
		if b <= ' ' || b >= 0x7f {
			return false
		}
	}
	if target == "*" {
		return method == http.MethodOptions
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	if strings.HasPrefix(target, "/") {
		return true
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Host != "" && validHost(u.Host)
}

// fields are those of a head on which its framing and its host depend.
type fields struct {
	hosts, lengths, codings, expects int
	host, length, coding, expect     string
}

func (f *fields) add(line string) *refusal {
	if line == "" || line[0] == ' ' || line[0] == '\t' {
		return malformed("A line of the header is folded.")
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return malformed("A line of the header has no colon.")
	}
	if !httpguts.ValidHeaderFieldName(name) {
		return malformed("The name of a header field is not valid.")
	}
	value = strings.Trim(value, " \t")
	if !httpguts.ValidHeaderFieldValue(value) {
		return malformed("The value of a header field contains a control character.")
	}
	switch {
	case strings.EqualFold(name, "Host"):
		f.hosts, f.host = f.hosts+1, value
	case strings.EqualFold(name, "Content-Length"):
		f.lengths, f.length = f.lengths+1, value
	case strings.EqualFold(name, "Transfer-Encoding"):
		f.codings, f.coding = f.codings+1, value
	case strings.EqualFold(name, "Expect"):
		f.expects, f.expect = f.expects+1, value
	}
	return nil
}

func (f *fields) frame(l requestLine) (framing, *refusal) {
	switch {
	case f.hosts > 1:
		return framing{}, malformed("The request has more than one Host.")
	case f.hosts == 0 && !l.http10:
		return framing{}, malformed("The request has no Host.")
	case !validHost(f.host):
		return framing{}, malformed("The request's Host is not valid.")
	case f.lengths > 1:
		return framing{}, malformed("The request has more than one Content-Length.")
	case f.codings > 1:
		return framing{}, malformed("The request has more than one Transfer-Encoding.")
	case f.codings == 1 && f.lengths == 1:
		return framing{}, malformed("The request has both a Content-Length and a Transfer-Encoding.")
	case f.codings == 1 && l.http10:
		return framing{}, malformed("HTTP/1.0 has no Transfer-Encoding.")
	case f.expects > 1 || f.expects == 1 && !strings.EqualFold(f.expect, "100-continue"):
		return framing{}, &refusal{http.StatusExpectationFailed, "The only expectation that is met is 100-continue."}
	}
	if f.codings == 1 {
		return f.chunked()
	}
	if f.lengths == 0 {
		return framing{}, nil
	}
	n, err := strconv.ParseUint(f.length, 10, 63)
	if err != nil {
		return framing{}, malformed("The Content-Length is not a number of bytes.")
	}
	return fixed(int64(n)), nil
}

func (f *fields) chunked() (framing, *refusal) {
	if strings.EqualFold(f.coding, "chunked") {
		return chunked(), nil
	}
	// A coding that is not known is 501 (RFC 9112, 6.1), but a body whose end
	// cannot be told is 400 (6.3).
	codings := strings.Split(f.coding, ",")
	for i, c := range codings {
		if isChunked := strings.EqualFold(strings.Trim(c, " \t"), "chunked"); isChunked != (i == len(codings)-1) {
			return framing{}, malformed("The last transfer coding, and no other, must be chunked.")
		}
	}
	return framing{}, &refusal{http.StatusNotImplemented, "The only transfer coding that is supported is chunked."}
}

// validHost takes uri-host [":" port] (RFC 9110, 7.2), and none at all.
func validHost(host string) bool {
	if strings.HasPrefix(host, "[") {
		address, port, ok := strings.Cut(host[1:], "]")
		ip, err := netip.ParseAddr(address)
		return ok && err == nil && ip.Is6() && ip.Zone() == "" && validPort(port)
	}
	name, port := host, ""
	if i := strings.IndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	for _, b := range []byte(name) {
		if !letter(b) && !digit(b) && strings.IndexByte("-._~%!$&'()*+,;=", b) < 0 {
			return false
		}
	}
	return (name != "" || port == "") && validPort(port)
}

// validPort takes what follows the host: nothing, or a colon and digits.
func validPort(port string) bool {
	if port == "" {
		return true
	}
	if port[0] != ':' || len(port) > len(":65535") {
		return false
	}
	for _, b := range []byte(port[1:]) {
		if !digit(b) {
			return false
		}
	}
	return true
}

func digit(b byte) bool  { return b >= '0' && b <= '9' }
func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
