package wire

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/budget"
)

// resultHead is the payload of frameResult.
type resultHead struct {
	MIME     string `json:"mime"`
	Position int64  `json:"position"`
	// Parts share the content; without any, all of it is of type MIME.
	Parts []Part `json:"parts"`
}

// Part is one representation of a result.
type Part struct {
	MIME string `json:"mime"`
	Size int64  `json:"size"` // bytes
}

// incoming hands what a runner sends between run and exit to a sink, and
// refuses what the run's limits do not allow.
type incoming struct {
	ctx    context.Context
	sink   Sink
	limits Limits

	output    [2]int64 // bytes, per stream
	results   int
	artifacts int
	content   [2]int64 // bytes, of results and of artifacts

	item *item // the one that is open
}

// item is a result or an artifact whose content is on its way.
type item struct {
	result   *resultHead
	artifact *execution.Artifact
	content  []byte
}

func (in *incoming) frame(t frameType, payload []byte) error {
	switch t {
	case frameStarted:
		in.sink.Started()
	case frameStdout:
		return in.piece(execution.Stdout, payload)
	case frameStderr:
		return in.piece(execution.Stderr, payload)
	case frameResult, frameArtifact:
		return in.open(t, payload)
	case frameData:
		return in.data(payload)
	case frameEnd:
		return in.end(string(payload))
	case frameFailure:
		return decodeFailure(payload)
	default:
		return fmt.Errorf("%w: unexpected %q", errFrame, t)
	}
	return nil
}

// piece takes a piece of an output stream.
func (in *incoming) piece(stream execution.Stream, payload []byte) error {
	if len(payload) < 8 {
		return fmt.Errorf("%w: output of %d bytes", errFrame, len(payload))
	}
	skipped := int64(binary.BigEndian.Uint64(payload))
	data := payload[8:]
	in.output[stream] += int64(len(data))
	if skipped < 0 || in.output[stream] > in.limits.Output {
		return fmt.Errorf("%w: more output than the limit", errFrame)
	}
	in.sink.Output(stream, data, skipped)
	return nil
}

func (in *incoming) open(t frameType, payload []byte) error {
	if in.item != nil {
		return fmt.Errorf("%w: an item within another", errFrame)
	}
	in.item = &item{}
	var head any
	if t == frameResult {
		in.item.result = &resultHead{}
		head = in.item.result
		in.results++
	} else {
		in.item.artifact = &execution.Artifact{}
		head = in.item.artifact
		in.artifacts++
	}
	if err := json.Unmarshal(payload, head); err != nil {
		return fmt.Errorf("%w: %q: %w", errFrame, t, err)
	}
	if in.results > in.limits.Results || in.artifacts > in.limits.Artifacts {
		return fmt.Errorf("%w: more items than the limit", errFrame)
	}
	return nil
}

func (in *incoming) data(piece []byte) error {
	if in.item == nil {
		return fmt.Errorf("%w: content without an item", errFrame)
	}
	kind, limit := 0, in.limits.ResultBytes
	if in.item.artifact != nil {
		kind, limit = 1, in.limits.ArtifactBytes
	}
	if in.content[kind] += int64(len(piece)); in.content[kind] > limit {
		return fmt.Errorf("%w: more content than the limit", errFrame)
	}
	if err := budget.Take(in.ctx, int64(itemCost*len(piece))); err != nil {
		return fmt.Errorf("content of an item: %w", err)
	}
	in.item.content = append(in.item.content, piece...)
	return nil
}

// itemCost is the memory for each byte of an item's content while it arrives:
// the bytes, room for more, and the text or base64 that they become.
const itemCost = 3

// end hands the open item over; broken says why its content is not whole.
func (in *incoming) end(broken string) error {
	it := in.item
	in.item = nil
	if it != nil {
		defer budget.Give(in.ctx, int64(itemCost*len(it.content)))
	}
	switch {
	case it == nil:
		return fmt.Errorf("%w: the end of no item", errFrame)
	case it.artifact != nil:
		a := *it.artifact
		a.Content, a.Encoding = "", execution.EncodingUTF8
		switch {
		case broken != "":
			a.Omitted = broken
		case a.Omitted == "" && bytes.IndexByte(it.content, 0) >= 0:
			// It is no text, and JSON would write six bytes for each NUL.
			a.Content, a.Encoding = base64.StdEncoding.EncodeToString(it.content), execution.EncodingBase64
		case a.Omitted == "":
			a.Content, a.Encoding = execution.Encode(it.content)
		}
		in.sink.Artifact(a)
	case broken == "":
		r, err := richResult(*it.result, it.content)
		if err != nil {
			return err
		}
		in.sink.Result(r)
	}
	return nil
}

// richResult is a result whose content is complete.
func richResult(head resultHead, content []byte) (execution.RichResult, error) {
	parts := head.Parts
	if len(parts) == 0 {
		parts = []Part{{MIME: head.MIME, Size: int64(len(content))}}
	}
	r := execution.RichResult{Position: head.Position, Alternatives: []execution.Representation{}}
	for i, p := range parts {
		if p.Size < 0 || p.Size > int64(len(content)) {
			return r, fmt.Errorf("%w: a result's parts are larger than its content", errFrame)
		}
		data := dataOf(p.MIME, content[:p.Size])
		content = content[p.Size:]
		if i == 0 {
			r.MIME, r.Data = p.MIME, data
		} else {
			r.Alternatives = append(r.Alternatives, execution.Representation{MIME: p.MIME, Data: data})
		}
	}
	return r, nil
}

// dataOf is content as a result has it.
func dataOf(mime string, content []byte) string {
	if execution.IsTextMIME(mime) {
		return strings.ToValidUTF8(string(content), "\uFFFD")
	}
	return base64.StdEncoding.EncodeToString(content)
}
