// Package origin plays the pages of other origins that try to drive the
// running product from a user's browser. What a browser would let such a page
// send is refused, and no response may be read by one.
package origin

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) { os.Exit(product.Main(m, &shared)) }

const (
	execute = "/v1/sandbox/execute"
	program = `{"language": "python", "code": "print(1)"}`
	evil    = "https://evil.example"
)

// send sends a request with headers, Host among them, and checks that the
// response allows no other origin to read it.
func send(t *testing.T, method, path, body string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, shared.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	if host, ok := header["Host"]; ok {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s %s answers with %s: %s", method, path, name, res.Header.Get(name))
		}
	}
	if policy := res.Header.Get("Cross-Origin-Resource-Policy"); policy != "same-origin" {
		t.Errorf("%s %s may be embedded: %q", method, path, policy)
	}
	return res.StatusCode, string(got)
}

// port is the port that the product listens on.
func port(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(shared.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

func TestOtherOriginsAreRefused(t *testing.T) {
	form := url.Values{"language": {"python"}, "code": {"print(1)"}}.Encode()
	for name, test := range map[string]struct {
		method, path, body string
		header             map[string]string
		status             int
	}{
		// What a form or a "no-cors" script can send without asking.
		"text form":              {"POST", execute, program, map[string]string{"Content-Type": "text/plain", "Origin": evil, "Sec-Fetch-Site": "cross-site"}, 403},
		"urlencoded form":        {"POST", execute, form, map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": evil}, 403},
		"multipart form":         {"POST", execute, form, map[string]string{"Content-Type": "multipart/form-data; boundary=x", "Origin": evil}, 403},
		"text form, no origin":   {"POST", execute, program, map[string]string{"Content-Type": "text/plain"}, 415},
		"urlencoded, no origin":  {"POST", execute, form, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		"beacon":                 {"POST", execute, program, map[string]string{"Content-Type": "text/plain;charset=UTF-8", "Origin": "null"}, 403},
		"at the root":            {"POST", "/", program, map[string]string{"Content-Type": "text/plain", "Origin": evil}, 403},
		"at the root, no origin": {"POST", "/", program, map[string]string{"Content-Type": "text/plain"}, 415},
		// What a script would need permission for, were it to ask.
		"JSON":                  {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Origin": evil}, 403},
		"event":                 {"POST", "/", program, map[string]string{"Content-Type": "application/json", "Origin": evil, "Ce-Id": "1", "Ce-Type": "t", "Ce-Source": "/s", "Ce-Specversion": "1.0"}, 403},
		"chat":                  {"POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "hi"}]}`, map[string]string{"Content-Type": "application/json", "Origin": evil}, 403},
		"sandboxed frame":       {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Origin": "null"}, 403},
		"own name, other port":  {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Origin": "http://127.0.0.1:1"}, 403},
		"own address as a part": {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Origin": shared.URL + ".evil.example"}, 403},
		"other site, no origin": {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, 403},
		"same site, no origin":  {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Sec-Fetch-Site": "same-site"}, 403},
		"read":                  {"GET", "/v1/pools", "", map[string]string{"Origin": evil, "Sec-Fetch-Site": "cross-site"}, 403},
		// A page whose own name was made to point here is of the same origin
		// to its browser, but sends that name.
		"rebinding":                {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Host": "evil.example", "Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, 403},
		"rebinding, with the port": {"POST", execute, program, map[string]string{"Content-Type": "application/json", "Host": "evil.example:" + port(t)}, 403},
		"rebinding, read":          {"GET", "/v1/pools", "", map[string]string{"Host": "evil.example"}, 403},
		"rebinding, page":          {"GET", "/", "", map[string]string{"Host": "evil.example"}, 403},
		"name below localhost":     {"GET", "/v1/pools", "", map[string]string{"Host": "evil.localhost.example"}, 403},
		"address of every host":    {"GET", "/v1/pools", "", map[string]string{"Host": "0.0.0.0:" + port(t)}, 403},
		"localhost with a dot":     {"GET", "/v1/pools", "", map[string]string{"Host": "localhost.:" + port(t)}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			if status, body := send(t, test.method, test.path, test.body, test.header); status != test.status {
				t.Errorf("status %d instead of %d: %.300s", status, test.status, body)
			}
		})
	}
}

// A browser that asks before it sends gets no permission.
func TestNoPermissionIsGiven(t *testing.T) {
	for _, path := range []string{execute, "/", "/v1/chat/completions", "/v1/pools"} {
		for _, origin := range []string{evil, "null", "http://127.0.0.1:1"} {
			status, body := send(t, http.MethodOptions, path, "", map[string]string{
				"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type", "Access-Control-Request-Private-Network": "true",
			})
			if status != http.StatusForbidden {
				t.Errorf("%s for %s: status %d: %s", path, origin, status, body)
			}
		}
	}
}

// The page itself, and clients that are no browsers, are served under every
// name of this machine's own.
func TestOwnOriginIsServed(t *testing.T) {
	for name, header := range map[string]map[string]string{
		"no browser": {},
		"page":       {"Origin": shared.URL, "Sec-Fetch-Site": "same-origin"},
		"localhost":  {"Host": "localhost:" + port(t), "Origin": "http://localhost:" + port(t), "Sec-Fetch-Site": "same-origin"},
		"IPv6":       {"Host": net.JoinHostPort("::1", port(t)), "Origin": "http://" + net.JoinHostPort("::1", port(t))},
		"upper case": {"Host": "LOCALHOST:" + port(t)},
		"by hand":    {"Sec-Fetch-Site": "none"},
		"behind TLS": {"Origin": strings.Replace(shared.URL, "http:", "https:", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			header["Content-Type"] = "application/json"
			if status, body := send(t, http.MethodPost, execute, program, header); status != http.StatusOK || !strings.Contains(body, `"stdout":"1\n"`) {
				t.Errorf("status %d: %s", status, body)
			}
			if status, body := send(t, http.MethodGet, "/", "", header); status != http.StatusOK {
				t.Errorf("the page: status %d: %.300s", status, body)
			}
		})
	}
}
