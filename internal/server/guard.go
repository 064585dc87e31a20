package server

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/preheat-dev/preheat/api/execution"
)

const anyOne = "*"

// guard keeps pages of other origins from driving the server. A page that had
// its own name rebound to this server's address sends that name as Host; a
// form or script of another origin is given away by Origin or by
// Sec-Fetch-Site, which pages cannot set. Responses carry no CORS headers, so
// that such a page could not read them either.
type guard struct {
	hosts     []string
	origins   *http.CrossOriginProtection
	anyOrigin bool
}

func newGuard(hosts, origins []string) (*guard, error) {
	// A name that was rebound is never one of these.
	g := &guard{hosts: []string{"localhost", "127.0.0.1", "::1"}, origins: http.NewCrossOriginProtection()}
	for _, h := range hosts {
		h = strings.ToLower(strings.TrimSpace(h))
		if h == "" || strings.ContainsAny(h, "/@ ") {
			return nil, fmt.Errorf("allowed host %q is not a host name", h)
		}
		g.hosts = append(g.hosts, unbracket(h))
	}
	for _, o := range origins {
		o = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(o), "/"))
		if o == anyOne {
			g.anyOrigin = true
		} else if err := g.origins.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("allowed origin %q is not of the form scheme://host[:port]", o)
		}
	}
	return g, nil
}

// check returns a problem for a request that does not get through.
func (g *guard) check(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	host := strings.ToLower(r.Host)
	if !g.hostAllowed(host) {
		return forbidden("This server does not answer for the host of the request. PREHEAT_ALLOWED_HOSTS lists more.")
	}
	origin := strings.ToLower(r.Header.Get("Origin"))
	if g.anyOrigin && origin != "" {
		return nil
	}
	if host == "" && origin != "" {
		return forbidden("Requests from other origins are not allowed.")
	}
	probe := &http.Request{Method: r.Method, Host: withoutStandardPort(host), Header: http.Header{
		"Origin": {origin}, "Sec-Fetch-Site": {r.Header.Get("Sec-Fetch-Site")},
	}}
	if origin != "" {
		// Other origins may not read either: no response is for them.
		probe.Method = http.MethodPost
	}
	if err := g.origins.Check(probe); err != nil {
		return forbidden("Requests from other origins are not allowed.")
	}
	return nil
}

// withoutStandardPort makes a host look like that of an origin.
func withoutStandardPort(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443")
}

func forbidden(detail string) error {
	return execution.NewProblem(execution.ProblemForbidden, "%s", detail)
}

func (g *guard) hostAllowed(host string) bool {
	if slices.Contains(g.hosts, anyOne) {
		return true
	}
	name, _ := splitPort(host)
	return slices.Contains(g.hosts, name) || slices.Contains(g.hosts, host)
}

func splitPort(host string) (name, port string) {
	if n, p, err := net.SplitHostPort(host); err == nil {
		return n, p
	}
	return unbracket(host), ""
}

func unbracket(host string) string {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host[1 : len(host)-1]
	}
	return host
}
