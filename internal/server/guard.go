package server

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
)

const anyOne = "*"

// guard keeps pages of other origins from driving the server. A page that had
// its own name rebound to this server's address sends that name as Host; a
// form or script of another origin is given away by Origin or by
// Sec-Fetch-Site, which pages cannot set. Responses carry no CORS headers, so
// that such a page could not read them either.
type guard struct {
	hosts   []string
	origins []string
}

func newGuard(hosts, origins []string) (*guard, error) {
	// A name that was rebound is never one of these.
	g := &guard{hosts: []string{"localhost", "127.0.0.1", "::1"}}
	for _, h := range hosts {
		h = strings.ToLower(strings.TrimSpace(h))
		if h == "" || strings.ContainsAny(h, "/@ ") {
			return nil, fmt.Errorf("allowed host %q is not a host name", h)
		}
		g.hosts = append(g.hosts, unbracket(h))
	}
	for _, o := range origins {
		o = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(o), "/"))
		if u, err := url.Parse(o); o != anyOne && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "") {
			return nil, fmt.Errorf("allowed origin %q is not of the form scheme://host[:port]", o)
		}
		g.origins = append(g.origins, o)
	}
	return g, nil
}

// check is the middleware.
func (g *guard) check(c *fiber.Ctx) error {
	c.Set("Cross-Origin-Resource-Policy", "same-origin")
	host := strings.ToLower(string(c.Request().Host()))
	if !g.hostAllowed(host) {
		return forbidden("This server does not answer for the host of the request. PREHEAT_ALLOWED_HOSTS lists more.")
	}
	origin, site := strings.ToLower(c.Get(fiber.HeaderOrigin)), c.Get("Sec-Fetch-Site")
	if g.originAllowed(origin) {
		return c.Next()
	}
	// What the browser itself calls same-origin is, also behind a proxy that
	// changes Host.
	if origin != "" && site != "same-origin" && !sameOrigin(origin, host) {
		return forbidden("Requests from other origins are not allowed.")
	}
	if site != "" && site != "same-origin" && site != "none" && !safe(c.Method()) {
		return forbidden("Requests from other sites are not allowed.")
	}
	return c.Next()
}

func forbidden(detail string) error {
	return execution.NewProblem(execution.ProblemForbidden, "%s", detail)
}

func safe(method string) bool {
	return method == fiber.MethodGet || method == fiber.MethodHead || method == fiber.MethodOptions
}

func (g *guard) hostAllowed(host string) bool {
	if slices.Contains(g.hosts, anyOne) {
		return true
	}
	name, _ := splitPort(host)
	return slices.Contains(g.hosts, name) || slices.Contains(g.hosts, host)
}

func (g *guard) originAllowed(origin string) bool {
	return origin != "" && (slices.Contains(g.origins, origin) || slices.Contains(g.origins, anyOne))
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null", among others
	}
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	name, port := splitPort(host)
	if port == "" {
		port = standard
	}
	originPort := u.Port()
	if originPort == "" {
		originPort = standard
	}
	return u.Hostname() == name && originPort == port
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
