package chat

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/preheat-dev/preheat/internal/environment"
)

// Config is chat's part of the environment; see package environment for the
// variables' names.
type Config struct {
	// LLM is the language model to talk to.
	LLM LLM `envPrefix:"LLM_"`
	// ChatURL is another chat. Everything below /v1 is then passed on to it,
	// and neither a model server nor execute is asked from here.
	ChatURL string
	// ExecuteURL is where execute takes events.
	ExecuteURL string `envDefault:"http://127.0.0.1:8081"`
	// ExecuteTimeout bounds the wait for execute's answer beyond the time that
	// execute's own limits allow a program and its wait for a sandbox.
	ExecuteTimeout time.Duration `envDefault:"10m"`
	// EventSource is the source attribute of the events sent to execute.
	EventSource string `envDefault:"/preheat/chat"`
	// RefusalLimit bounds what execute may say of a request that it refuses,
	// in bytes. Results are bounded by execute's own limits.
	RefusalLimit int64 `envDefault:"67108864"`
}

// LLM says which language model answers. Without URL, one that serves on this
// machine is looked for, and until there is one the demo model answers.
type LLM struct {
	// URL is the base URL of an OpenAI-compatible server, with or without
	// /v1 at its end.
	URL string
	// APIKey is sent to the server as a bearer token.
	APIKey Secret
	// Model is used for requests that name none.
	Model string
	// Discover says whether to look for a server on this machine.
	Discover bool `envDefault:"true"`
	// ForwardAuthorization passes the client's Authorization header on when
	// there is no APIKey.
	ForwardAuthorization bool
	// FirstByteTimeout bounds the wait for the server's first byte,
	// IdleTimeout that between two pieces of its answer.
	FirstByteTimeout time.Duration `envDefault:"5m"`
	IdleTimeout      time.Duration `envDefault:"2m"`
}

// Secret is a text that does not show when it is printed or logged.
type Secret string

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(secret)"
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ConfigFromEnv reads Config from the environment.
func ConfigFromEnv() (Config, error) {
	var c Config
	if err := environment.Read(&c); err != nil {
		return Config{}, err
	}
	return c, c.Validate()
}

// Validate checks what the types cannot, naming the variable.
func (c Config) Validate() error {
	if c.LLM.URL != "" {
		if _, err := baseURL(c.LLM.URL); err != nil {
			return fmt.Errorf("PREHEAT_LLM_URL: %w", err)
		}
	}
	if strings.ContainsAny(string(c.LLM.APIKey), "\r\n") {
		return errors.New("PREHEAT_LLM_API_KEY holds a line break")
	}
	if c.ChatURL != "" {
		if err := checkURL(c.ChatURL); err != nil {
			return fmt.Errorf("PREHEAT_CHAT_URL: %w", err)
		}
	}
	if err := checkURL(c.ExecuteURL); err != nil {
		return fmt.Errorf("PREHEAT_EXECUTE_URL: %w", err)
	}
	if _, err := url.Parse(c.EventSource); err != nil || c.EventSource == "" {
		return errors.New("PREHEAT_EVENT_SOURCE is not a URI reference")
	}
	for name, d := range map[string]time.Duration{
		"PREHEAT_LLM_FIRST_BYTE_TIMEOUT": c.LLM.FirstByteTimeout, "PREHEAT_LLM_IDLE_TIMEOUT": c.LLM.IdleTimeout,
		"PREHEAT_EXECUTE_TIMEOUT": c.ExecuteTimeout,
	} {
		if d <= 0 {
			return fmt.Errorf("%s must be positive", name)
		}
	}
	if c.RefusalLimit <= 0 {
		return errors.New("PREHEAT_REFUSAL_LIMIT must be positive")
	}
	return nil
}

// baseURL returns text with /v1 at its end.
func baseURL(text string) (*url.URL, error) {
	if err := checkURL(text); err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	u = u.JoinPath("/")
	if !strings.HasSuffix(u.Path, "/v1/") {
		u = u.JoinPath("v1/")
	}
	return u, nil
}

// checkURL is careful not to quote a URL, which may hold a password.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the scheme must be http or https")
	case u.Hostname() == "":
		return errors.New("the host is missing")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("a base URL has no query and no fragment")
	}
	return nil
}
