// Package client calls a Preheat server: it runs programs in fresh sandboxes
// and gives back what they left, whole or while they run. A program that failed
// is a result; an error is of the platform, an *execution.Problem where the
// server said what happened. A call ends when its context does, and its program
// with it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/preheat-dev/preheat/api/execution"
)

// problemBytes bounds what a server may say of a request that it refuses. What
// there was of a program's output is a part of it.
const problemBytes = 64 << 20

// Client calls one server. It is safe for use by several goroutines.
type Client struct {
	base string
	http *http.Client
}

// New returns a client of the server at a URL such as http://127.0.0.1:8080.
// web sends its requests; http.DefaultClient when nil.
func New(server string, web *http.Client) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("the server's URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the server's URL %q is not of the form http://host:port", server)
	}
	if web == nil {
		web = http.DefaultClient
	}
	return &Client{base: strings.TrimSuffix(server, "/"), http: web}, nil
}

// Execute runs a program and returns its result. A key, if not empty, is what
// the caller calls the request: sent again with the same key it does not run its
// program twice.
func (c *Client) Execute(ctx context.Context, r execution.Request, key string) (*execution.Result, error) {
	header := http.Header{}
	if key != "" {
		header.Set(execution.HeaderIdempotencyKey, key)
	}
	var result execution.Result
	if err := c.call(ctx, http.MethodPost, "/v1/sandbox/execute", r, header, &result); err != nil {
		return nil, err
	}
	return &result, nil
}

// Languages lists the languages that the server runs.
func (c *Client) Languages(ctx context.Context) ([]execution.Language, error) {
	var list struct{ Languages []execution.Language }
	err := c.call(ctx, http.MethodGet, "/v1/languages", nil, nil, &list)
	return list.Languages, err
}

// Pools lists the warm pools and their sandboxes.
func (c *Client) Pools(ctx context.Context) ([]execution.PoolStatus, error) {
	var list struct{ Pools []execution.PoolStatus }
	err := c.call(ctx, http.MethodGet, "/v1/pools", nil, nil, &list)
	return list.Pools, err
}

// call sends body as JSON, if there is one, and decodes the answer.
func (c *Client) call(ctx context.Context, method, path string, body any, header http.Header, answer any) error {
	res, err := c.send(ctx, method, path, body, header)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}

// send returns the response to a request that was not refused.
func (c *Client) send(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	var text io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		text = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, text)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", execution.MediaJSON)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	return nil, problemOf(res)
}

// problemOf is what the server, or what stands between, said of a request.
func problemOf(res *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(res.Body, problemBytes))
	p := new(execution.Problem)
	if err == nil && json.Unmarshal(text, p) == nil && p.Type != "" {
		return p
	}
	const quote = 200
	return errors.Join(fmt.Errorf("the server answered with status %s: %.*s", res.Status, quote, text), err)
}
