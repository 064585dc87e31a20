package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/tmaxmax/go-sse"

	"github.com/preheat-dev/preheat/api/execution"
)

// eventBytes bounds one event of a stream: the largest artifact, in base64.
const eventBytes = 64 << 20

// ErrCut is of a stream that ended before it said how the program did.
var ErrCut = errors.New("the stream broke off before the program's end")

// Handler takes what a program yields while it runs. Members may be nil; an
// error ends the call, and the program.
type Handler struct {
	Start    func(execution.Start) error
	Output   func(stream execution.Stream, data []byte, skipped int64) error
	Result   func(execution.RichResult) error
	Artifact func(execution.Artifact) error
}

// Stream runs a program and returns how it ended. The error is also that of a
// platform that failed while the program ran; what is known of it is in the exit.
func (c *Client) Stream(ctx context.Context, r execution.Request, h Handler) (*execution.Exit, error) {
	res, err := c.send(ctx, http.MethodPost, "/v1/sandbox/execute", r, http.Header{"Accept": {execution.MediaSSE}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	for event, err := range sse.Read(res.Body, &sse.ReadConfig{MaxEventSize: eventBytes}) {
		if err != nil {
			return nil, errors.Join(ErrCut, err)
		}
		exit, err := h.take(event.Type, []byte(event.Data))
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", event.Type, err)
		}
		if exit == nil {
			continue
		}
		if exit.Problem != nil {
			return exit, exit.Problem
		}
		return exit, nil
	}
	return nil, ErrCut
}

// take gives an event to the member that takes it; the last one is returned.
func (h *Handler) take(name string, data []byte) (*execution.Exit, error) {
	switch name {
	case execution.EventStart:
		return nil, give(data, h.Start)
	case execution.EventStdout:
		return nil, give(data, h.output(execution.Stdout))
	case execution.EventStderr:
		return nil, give(data, h.output(execution.Stderr))
	case execution.EventResult:
		return nil, give(data, h.Result)
	case execution.EventArtifact:
		return nil, give(data, h.Artifact)
	case execution.EventExit:
		exit := new(execution.Exit)
		return exit, json.Unmarshal(data, exit)
	}
	return nil, nil
}

func give[T any](data []byte, to func(T) error) error {
	if to == nil {
		return nil
	}
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	return to(v)
}

func (h *Handler) output(stream execution.Stream) func(execution.Output) error {
	if h.Output == nil {
		return nil
	}
	return func(o execution.Output) error {
		data := []byte(o.Data)
		if o.Encoding == execution.EncodingBase64 {
			var err error
			if data, err = base64.StdEncoding.DecodeString(o.Data); err != nil {
				return err
			}
		}
		return h.Output(stream, data, o.Skipped)
	}
}
