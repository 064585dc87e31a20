// Package page serves the web page from memory, with a content security policy
// that lets it run its own scripts only.
package page

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"path"
	"regexp"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// policy lets the page run its own scripts only, and be framed by nobody.
// What programs display is shown in frames without scripts that inherit this
// policy; their tables bring styles of their own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; " +
	"font-src 'self' data:; media-src data: blob:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; frame-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const noPage = "The page is not part of this build. The API is at /v1/sandbox/execute and /v1/chat/completions.\n"

// hashed matches names that Vite makes of a file's content.
var hashed = regexp.MustCompile(`^assets/.*-[A-Za-z0-9_-]{8,}\.[A-Za-z0-9]+$`)

// Page is the built page, in memory. It is immutable.
type Page struct {
	files map[string]file
}

type file struct {
	content []byte
	media   string
	etag    string
	cache   string
}

// New reads a page that has index.html at its root. Without fsys there is none,
// and the root says so.
func New(fsys fs.FS) (*Page, error) {
	p := &Page{files: map[string]file{}}
	if fsys == nil {
		return p, nil
	}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		f := file{
			content: content, media: mediaOf(name), cache: "no-cache",
			etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`,
		}
		if hashed.MatchString(name) {
			f.cache = "public, max-age=31536000, immutable"
		}
		p.files["/"+name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	if index, ok := p.files["/index.html"]; ok {
		p.files["/"] = index
	}
	return p, nil
}

// mediaOf does not ask the system's tables, which differ between machines.
func mediaOf(name string) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		if media := mime.TypeByExtension(ext); media != "" {
			return media
		}
		return "application/octet-stream"
	}
}

// Register adds the page's files to r.
func (p *Page) Register(r fiber.Router) {
	if _, ok := p.files["/"]; !ok {
		r.Get("/", func(f *fiber.Ctx) error {
			f.Set(fiber.HeaderCacheControl, "no-store")
			return f.SendString(noPage)
		})
	}
	for name, content := range p.files {
		r.Get(name, content.serve)
	}
}

func (c file) serve(f *fiber.Ctx) error {
	f.Set(fiber.HeaderContentType, c.media)
	f.Set(fiber.HeaderCacheControl, c.cache)
	f.Set(fiber.HeaderETag, c.etag)
	f.Set(fiber.HeaderContentSecurityPolicy, policy)
	f.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	f.Set(fiber.HeaderXFrameOptions, "DENY")
	f.Set("Cross-Origin-Opener-Policy", "same-origin")
	if matches(f.Get(fiber.HeaderIfNoneMatch), c.etag) {
		return f.SendStatus(fiber.StatusNotModified)
	}
	return f.Send(c.content)
}

func matches(condition, etag string) bool {
	for one := range strings.SplitSeq(condition, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == etag || one == "*" {
			return true
		}
	}
	return false
}
