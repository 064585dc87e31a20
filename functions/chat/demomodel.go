package chat

import (
	"context"
	"encoding/json"
	"errors"
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
		Delta        *delta   `json:"delta,omitempty"`
		Logprobs     any      `json:"logprobs"`
		FinishReason *string  `json:"finish_reason"`
	}
	message struct {
		Role      string     `json:"role"`
		Content   *string    `json:"content"`
		Refusal   *string    `json:"refusal"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
	delta struct {
		Role      string     `json:"role,omitempty"`
		Content   string     `json:"content,omitempty"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		// Index is only in streams.
		Index    *int         `json:"index,omitempty"`
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function functionCall `json:"function"`
	}
	functionCall struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
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
	asked, err := parseDemoRequest(req.body)
	if err != nil {
		refusal := openai.InvalidRequest("invalid_request", err.Error())
		if field := new(fieldError); errors.As(err, &field) {
			refusal.Param = &field.field
		}
		return refusal.Send(f)
	}
	if req.model != "" && req.model != demo.Model {
		return openai.NewError(http.StatusNotFound, openai.TypeInvalidRequest, "model_not_found", fmt.Sprintf(
			"There is no model %.100q: no language model is connected, only %s answers. Set PREHEAT_LLM_URL to connect one.", req.model, demo.Model)).Send(f)
	}
	seen := c.metrics.Begin(sourceDemo)
	answer := demo.Complete(asked.Request)
	id := server.RequestID(f)
	base := chunk{ID: "chatcmpl-" + id, Created: time.Now().Unix(), Model: demo.Model}
	u := count(asked, &answer)
	if !req.stream {
		defer seen.End(relay.OutcomeOf(http.StatusOK))
		seen.FirstByte()
		base.Object, base.Usage = "chat.completion", u
		for i := range asked.choices {
			base.Choices = append(base.Choices, choice{Index: i, Message: messageOf(&answer, callID(id, i)), FinishReason: &answer.Finish})
		}
		return f.JSON(base)
	}
	base.Object = "chat.completion.chunk"
	var chunks []chunk
	for i := range asked.choices {
		chunks = append(chunks, chunksOf(base, i, &answer, callID(id, i))...)
	}
	if asked.usage {
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

func callID(request string, choice int) string { return fmt.Sprintf("call_%s_%d", request, choice) }

func messageOf(answer *demo.Completion, id string) *message {
	if answer.Call == nil {
		return &message{Role: "assistant", Content: &answer.Text}
	}
	return &message{Role: "assistant", ToolCalls: []toolCall{{ID: id, Type: "function", Function: functionCall(*answer.Call)}}}
}

// chunksOf are the pieces of one choice.
func chunksOf(base chunk, index int, answer *demo.Completion, id string) []chunk {
	one := func(d delta, finish *string) chunk {
		c := base
		c.Choices = []choice{{Index: index, Delta: &d, FinishReason: finish}}
		return c
	}
	chunks := []chunk{one(delta{Role: "assistant"}, nil)}
	if answer.Call != nil {
		first := 0
		call := toolCall{Index: &first, ID: id, Type: "function", Function: functionCall(*answer.Call)}
		chunks = append(chunks, one(delta{ToolCalls: []toolCall{call}}, nil))
	}
	for _, piece := range demo.Pieces(answer.Text) {
		chunks = append(chunks, one(delta{Content: piece}, nil))
	}
	return append(chunks, one(delta{}, &answer.Finish))
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
func count(asked *demoRequest, answer *demo.Completion) *usage {
	words := len(demo.Pieces(answer.Text))
	if answer.Call != nil {
		words = len(demo.Pieces(answer.Call.Arguments))
	}
	u := &usage{CompletionTokens: asked.choices * words}
	for _, m := range asked.Messages {
		u.PromptTokens += len(strings.Fields(m.Text))
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}
