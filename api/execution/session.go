package execution

import (
	"crypto/rand"
	"io"
	"math"
	"net/url"
	"strings"
	"time"
)

// SessionState says what a run in a session had of the runs before it, and what
// it leaves to the next.
type SessionState string

// The states of a session's interpreter.
const (
	// SessionFresh: the run began in a new interpreter, which goes on.
	SessionFresh SessionState = "fresh"
	// SessionKept: it ran where the runs before it did, and everything is kept.
	SessionKept SessionState = "kept"
	// SessionLost: the interpreter ended with this run. The files stay; the next
	// run begins in a new interpreter.
	SessionLost SessionState = "lost"
)

// SessionEnd says why a session is over.
type SessionEnd string

// The ends of sessions.
const (
	// SessionClosed: its caller ended it.
	SessionClosed SessionEnd = "closed"
	// SessionIdle: it was not used for as long as it stays idle.
	SessionIdle SessionEnd = "idle"
	// SessionExpired: its lifetime was over.
	SessionExpired SessionEnd = "expired"
	// SessionSandboxLost: its sandbox ended by itself: a node, a container or a
	// memory limit took it away.
	SessionSandboxLost SessionEnd = "sandbox_lost"
	// SessionShutdown: the server that held it was shut down.
	SessionShutdown SessionEnd = "shutdown"
)

// SessionRequest asks for a session: a sandbox that stays for several runs.
type SessionRequest struct {
	// Language names the interpreter; GET /v1/languages lists the choices.
	Language string `json:"language"`
	// Pool chooses a warm pool by name; empty leaves the choice to the server.
	Pool string `json:"pool,omitempty"`
	// IdleSeconds is how long the session stays without being used,
	// LifetimeSeconds how long it stays at most; the server's defaults when 0.
	IdleSeconds     float64 `json:"idle_seconds,omitempty"`
	LifetimeSeconds float64 `json:"lifetime_seconds,omitempty"`
	// Files are in the working directory from the start.
	Files []File `json:"files,omitempty"`
}

// SessionSpec is a valid SessionRequest with everything filled in and decoded.
type SessionSpec struct {
	Language, Pool string
	Idle, Lifetime time.Duration
	Files          []ProgramFile
}

// Session is an open session, as its owner sees it.
type Session struct {
	// ID names the session. Who has it may use the session.
	ID       string `json:"id"`
	Language string `json:"language"`
	Pool     string `json:"pool"`
	// SandboxName names its sandbox.
	SandboxName string    `json:"sandbox_name"`
	OpenedAt    time.Time `json:"opened_at"`
	// ExpiresAt is when it ends at the latest.
	ExpiresAt time.Time `json:"expires_at"`
	// IdleSeconds is how long it stays unused, IdleLeftSeconds how much of that
	// is left.
	IdleSeconds     float64 `json:"idle_seconds"`
	IdleLeftSeconds float64 `json:"idle_left_seconds"`
	// Running is the id of the execution that runs in it, null if none does.
	Running *string `json:"running"`
	// Sequence counts the runs that have begun.
	Sequence int64 `json:"sequence"`
}

// SessionEntry is a session in a list. It does not say the id, which would let
// everybody who reads the list use the session.
type SessionEntry struct {
	Language    string    `json:"language"`
	Pool        string    `json:"pool"`
	SandboxName string    `json:"sandbox_name"`
	OpenedAt    time.Time `json:"opened_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	IdleSeconds float64   `json:"idle_seconds"`
}

// SessionFile is a file in a session's working directory.
type SessionFile struct {
	// Path is relative to the working directory, with '/' between its parts.
	Path string `json:"path"`
	// Size is in bytes.
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modified_at"`
	// ETag identifies the content, with its quotes.
	ETag string `json:"etag"`
}

// SessionFileList is the body of a list of files. More says that there are
// others, which it does not show.
type SessionFileList struct {
	Files []SessionFile `json:"files"`
	More  bool          `json:"more"`
}

// SessionResult is what a run in a session left.
type SessionResult struct {
	Result
	// State says what the run had of those before it, and what it leaves.
	State SessionState `json:"state"`
	// Sequence is the run's number in the session, from 1 on.
	Sequence int64 `json:"sequence"`
}

// SessionExit is the data of EventExit for a run in a session. State and
// Sequence are null when the platform failed before they were known.
type SessionExit struct {
	Exit
	State    *SessionState `json:"state"`
	Sequence *int64        `json:"sequence"`
}

// Encode writes r's JSON document to w, as Result.Encode does.
func (r *SessionResult) Encode(w io.Writer) error {
	return r.encode(w, func(d *document) {
		d.value(`,"state":`, r.State)
		d.value(`,"sequence":`, r.Sequence)
	})
}

// DecodeSession reads a SessionRequest as strictly as Decode reads a Request.
func DecodeSession(document []byte) (SessionRequest, *Problem) {
	var r SessionRequest
	problem := decode(document, &r)
	return r, problem
}

// Validate checks r against what the server offers and returns it with
// everything filled in, or a problem that names the first field that is wrong.
func (r *SessionRequest) Validate(languages []Language, limits ServerLimits) (*SessionSpec, *Problem) {
	s := &SessionSpec{Pool: r.Pool}
	var problem *Problem
	if s.Language, problem = findLanguage(r.Language, languages); problem != nil {
		return nil, problem
	}
	if problem = checkPool(r.Pool, s.Language, languages); problem != nil {
		return nil, problem
	}
	l := limits.Sessions
	if s.Idle, problem = within("idle_seconds", r.IdleSeconds, l.IdleSeconds, l.MaximumIdleSeconds); problem != nil {
		return nil, problem
	}
	if s.Lifetime, problem = within("lifetime_seconds", r.LifetimeSeconds, l.LifetimeSeconds, l.MaximumLifetimeSeconds); problem != nil {
		return nil, problem
	}
	if s.Files, problem = decodeFiles(r.Files, limits); problem != nil {
		return nil, problem
	}
	return s, nil
}

// minSessionSeconds is the shortest that a session may stay, idle or at all.
const minSessionSeconds = 1

// within is a time in seconds, or standard where it is left out.
func within(field string, value, standard, most float64) (time.Duration, *Problem) {
	switch {
	case value == 0:
		value = standard
	case math.IsNaN(value) || value < minSessionSeconds || value > most:
		return 0, Invalid(field, "The time must be from %d to %g seconds.", minSessionSeconds, most)
	}
	return time.Duration(value * float64(time.Second)), nil
}

// ValidateIn checks r as Validate does, for a run in a session. Language and
// pool are the session's; a request need not name them, and cannot change them.
func (r *Request) ValidateIn(language, pool string, languages []Language, limits ServerLimits) (*Program, *Problem) {
	own := *r
	if r.Language == "" {
		own.Language = language
	}
	name, problem := findLanguage(own.Language, languages)
	switch {
	case r.Language != "" && problem != nil:
		return nil, problem
	case problem == nil && name != language:
		return nil, Invalid("language", "The session's language is %s.", language)
	case r.Pool != "" && r.Pool != pool:
		return nil, Invalid("pool", "The session's pool is %q.", pool)
	case r.Limits.MemoryBytes != 0 && r.Limits.MemoryBytes != limits.Default.MemoryBytes:
		return nil, Invalid("limits.memory_bytes", "A session's sandbox has %d bytes for all its runs.", limits.Default.MemoryBytes)
	}
	own.Language, own.Pool = language, ""
	return own.Validate([]Language{{Name: language}}, limits)
}

// CheckSessionPath returns a problem unless p is the path of a file below a
// session's working directory, or of that itself where root allows it.
func CheckSessionPath(p string, root bool) *Problem {
	if p == "" && root {
		return nil
	}
	if wrong := checkLocation(p); wrong != "" {
		return Invalid("path", "%q: %s", clip(p), wrong)
	}
	return nil
}

// SessionPath is the path below a session's working directory that a part of a
// URL names, or a problem about it. root allows that directory itself.
func SessionPath(part string, root bool) (string, *Problem) {
	p, err := url.PathUnescape(part)
	if err != nil {
		return "", Invalid("path", "The path is not percent-encoded as it should be.")
	}
	if root {
		p = strings.TrimSuffix(p, "/")
	}
	return p, CheckSessionPath(p, root)
}

// sessionIDLength is that of 130 random bits in base32.
const sessionIDLength = 26

// NewSessionID returns an id that nobody can guess.
func NewSessionID() string { return strings.ToLower(rand.Text()) }

// LoggedPath is the path of a URL as logs may have it: without the id of a
// session, which would let their readers use the session.
func LoggedPath(path string) string {
	const sessions, shown = "/v1/sessions/", 4
	rest, ok := strings.CutPrefix(path, sessions)
	if !ok {
		return path
	}
	id, tail, more := strings.Cut(rest, "/")
	if len(id) > shown {
		id = strings.ToValidUTF8(id[:shown], "") + "…"
	}
	if more {
		id += "/"
	}
	return sessions + id + tail
}

// IsSessionID reports whether id has the form of a session's id.
func IsSessionID(id string) bool {
	return len(id) == sessionIDLength && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '2' || r > '7')
	})
}
