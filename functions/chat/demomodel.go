package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/functions/chat/demo"
	"github.com/preheat-dev/preheat/functions/chat/openai"
	"github.com/preheat-dev/preheat/functions/chat/relay"
	"github.com/preheat-dev/preheat/internal/server"
)

// demoPace is the time between two deltas of the demo model's streams.
const demoPace = 12 * time.Millisecond

// sourceDemo marks requests that the demo model answers, in the metrics.
const sourceDemo = "demo"

// Objects of OpenAI's API, as far as the demo model sends them.
type (
	chunk struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   *usage   `json:"usage,omitempty"`
	}
	choice struct {
		Index        int      `json:"index"`
		Message      *message `json:"message,omitempty"`
		Delta        *message `json:"delta,omitempty"`
		FinishReason *string  `json:"finish_reason"`
	}
	message struct {
		Role    string `json:"role,omitempty"`
		Content string `json:"content,omitempty"`
	}
	usage struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
	model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
		Demo    bool   `json:"demo"`
	}
	modelList struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
		Demo   bool    `json:"demo"`
	}
)

// demoModel is the one model that there is without a model server.
var demoModel = model{ID: demo.Model, Object: "model", OwnedBy: ownedBy, Demo: true}

func (c *Chat) demoCompletion(f *fiber.Ctx, req *completion) error {
	messages, withUsage, err := parseConversation(req.body)
	if err != nil {
		return openai.InvalidRequest("invalid_request", err.Error()).Send(f)
	}
	if req.model != "" && req.model != demo.Model {
		return openai.NewError(http.StatusNotFound, openai.TypeInvalidRequest, "model_not_found", fmt.Sprintf(
			"There is no model %.100q: no language model is connected, only %s answers. Set PREHEAT_LLM_URL to connect one.", req.model, demo.Model)).Send(f)
	}
	seen := c.metrics.Begin(sourceDemo)
	text := demo.Reply(messages)
	base := chunk{ID: "chatcmpl-" + server.RequestID(f), Created: time.Now().Unix(), Model: demo.Model}
	u := count(messages, text)
	stop := "stop"
	if !req.stream {
		defer seen.End(relay.OutcomeOf(http.StatusOK))
		seen.FirstByte()
		base.Object, base.Usage = "chat.completion", u
		base.Choices = []choice{{Message: &message{Role: "assistant", Content: text}, FinishReason: &stop}}
		return f.JSON(base)
	}
	base.Object = "chat.completion.chunk"
	chunks := chunksOf(base, text, stop)
	if withUsage {
		last := base
		last.Choices, last.Usage = []choice{}, u
		chunks = append(chunks, last)
	}
	return server.StreamWithPing(f, server.PingComment, func(ctx context.Context, events *server.SSE) error {
		if err := streamChunks(ctx, events, chunks, seen); err != nil {
			seen.End(relay.OutcomeCancelled)
			return err
		}
		seen.End(relay.OutcomeOf(http.StatusOK))
		return nil
	})
}

func chunksOf(base chunk, text, stop string) []chunk {
	one := func(delta message, finish *string) chunk {
		c := base
		c.Choices = []choice{{Delta: &delta, FinishReason: finish}}
		return c
	}
	chunks := []chunk{one(message{Role: "assistant"}, nil)}
	for _, piece := range demo.Pieces(text) {
		chunks = append(chunks, one(message{Content: piece}, nil))
	}
	return append(chunks, one(message{}, &stop))
}

func streamChunks(ctx context.Context, events *server.SSE, chunks []chunk, seen *relay.Observation) error {
	pace := time.NewTicker(demoPace)
	defer pace.Stop()
	for _, c := range chunks {
		data, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if err := events.Frame(append(append([]byte("data: "), data...), "\n\n"...)); err != nil {
			return err
		}
		seen.FirstByte()
		select {
		case <-ctx.Done():
			_ = events.Frame(relay.UpstreamError(context.Cause(ctx)).Event())
			return context.Cause(ctx)
		case <-pace.C:
		}
	}
	return events.Frame([]byte("data: [DONE]\n\n"))
}

// count gives words for tokens, which the demo model does not have.
func count(messages []demo.Message, text string) *usage {
	u := &usage{CompletionTokens: len(demo.Pieces(text))}
	for _, m := range messages {
		u.PromptTokens += len(strings.Fields(m.Text))
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}
