package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/functions/chat/demo"
)

// Where the model comes from, in GET /v1/chat/status.
const (
	upstreamConfigured = "configured"
	upstreamDiscovered = "discovered"
	upstreamNone       = "none"
)

const (
	probeInterval = 15 * time.Second
	probeTimeout  = 2 * time.Second
	probeLimit    = 1 << 20

	// ownedBy marks the demo model.
	ownedBy = "preheat"
)

// target is a model server. It is immutable.
type target struct {
	base *url.URL
	// model is for requests that name none; empty when none is known.
	model  string
	source string
}

func (t *target) url(path, query string) string {
	u := t.base.JoinPath(path)
	if query != "" {
		u.RawQuery = query
	}
	return u.String()
}

// LocalServers are the usual addresses of Ollama, llama.cpp and vLLM on this
// machine.
func LocalServers() []string {
	return []string{"http://127.0.0.1:11434", "http://127.0.0.1:8080", "http://127.0.0.1:8000"}
}

// targets sets the configured model server, or those to look for.
func (c *Chat) targets(local []string) error {
	if text := c.config.LLM.URL; text != "" {
		base, err := baseURL(text)
		if err != nil {
			return fmt.Errorf("PREHEAT_LLM_URL: %w", err)
		}
		c.target.Store(&target{base: base, model: c.config.LLM.Model, source: upstreamConfigured})
		return nil
	}
	if !c.config.LLM.Discover {
		return nil
	}
	if local == nil {
		local = LocalServers()
	}
	for _, text := range local {
		base, err := baseURL(text)
		if err != nil {
			return fmt.Errorf("local model server %s: %w", text, err)
		}
		c.local = append(c.local, base)
	}
	return nil
}

// probe brings target up to date: a configured server is asked once for the
// model to use when none is configured, a discovered one is dropped when it no
// longer answers, and without one the usual places are tried.
func (c *Chat) probe(ctx context.Context) {
	now := c.target.Load()
	if now != nil && now.source == upstreamConfigured {
		if now.model != "" {
			return
		}
		if model, err := c.firstModel(ctx, now.base); err == nil {
			c.target.Store(&target{base: now.base, model: model, source: now.source})
			c.log.Info("model chosen from those that the server offers", "model", model)
		}
		return
	}
	for _, base := range c.local {
		model, err := c.firstModel(ctx, base)
		if err != nil {
			continue
		}
		if c.config.LLM.Model != "" {
			model = c.config.LLM.Model
		}
		found := &target{base: base, model: model, source: upstreamDiscovered}
		if now == nil || now.base.Host != base.Host || now.model != model {
			c.log.Info("found a model server on this machine", "url", base.Redacted(), "model", model)
		}
		c.target.Store(found)
		return
	}
	if now != nil && ctx.Err() == nil {
		c.log.Warn("the model server on this machine is gone: the demo model answers", "url", now.base.Redacted())
		c.target.Store(nil)
	}
}

// firstModel asks the server at base which models it has.
func (c *Chat) firstModel(ctx context.Context, base *url.URL) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("models").String(), nil)
	if err != nil {
		return "", err
	}
	c.authorize(req, "")
	c.instance.SetVia(nil, req)
	res, err := c.llm.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("list models: status %d", res.StatusCode)
	}
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, probeLimit)).Decode(&list); err != nil {
		return "", fmt.Errorf("list models: %w", err)
	}
	// Another Preheat's demo model is not worth asking.
	if len(list.Data) == 0 || list.Data[0].ID == "" || list.Data[0].OwnedBy == ownedBy {
		return "", fmt.Errorf("the server has no model")
	}
	return list.Data[0].ID, nil
}

// status answers GET /v1/chat/status.
func (c *Chat) status(f *fiber.Ctx) error {
	f.Set(fiber.HeaderCacheControl, "no-store")
	t := c.target.Load()
	if t == nil {
		return f.JSON(status{Model: demo.Model, Demo: true, Upstream: upstreamNone})
	}
	return f.JSON(status{Model: t.model, Upstream: t.source})
}

// status is the body of GET /v1/chat/status.
type status struct {
	// Model answers requests that name none; empty when only the model
	// server knows.
	Model string `json:"model"`
	// Demo says that the scripted demo model answers.
	Demo bool `json:"demo"`
	// Upstream says whether the model server was configured or discovered.
	Upstream string `json:"upstream"`
}
