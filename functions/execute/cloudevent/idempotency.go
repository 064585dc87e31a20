package cloudevent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/gofiber/fiber/v2"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/internal/server"
)

const (
	// maxIdempotencyKey bounds a key, in bytes.
	maxIdempotencyKey = 255
	// extensionRequest is, on a completed event, the fingerprint of the request
	// that it answers.
	extensionRequest = "requestfingerprint"
)

// idempotencyKey is the key that c's client gave its request, or empty.
func idempotencyKey(c *fiber.Ctx) (string, *execution.Problem) {
	values := c.GetReqHeaders()[execution.HeaderIdempotencyKey]
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	valid := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for _, b := range []byte(key) {
		valid = valid && b >= ' ' && b <= '~'
	}
	switch {
	case !valid:
		return "", execution.Invalid(execution.HeaderIdempotencyKey, "The header must be one text of 1 to %d visible ASCII characters.", maxIdempotencyKey)
	case server.WantsEvents(c):
		return "", execution.Invalid(execution.HeaderIdempotencyKey, "Streams are not kept, so that this one could not be given again: ask for JSON.")
	}
	return key, nil
}

// respond answers a request: one with a key once, however often it comes.
func (r *Receiver) respond(c *fiber.Ctx, body []byte) error {
	key, problem := idempotencyKey(c)
	if problem != nil {
		return problem
	}
	if key == "" {
		return r.api.Respond(c, body)
	}
	p, problem := r.api.Decode(body)
	if problem != nil {
		return problem
	}
	event := ce.New()
	event.SetID(key)
	event.SetSource(r.source)
	event.SetType(execution.TypeRequested)
	event.DataEncoded = body
	a, err := r.answerIdempotent(server.Context(c), &request{event: &event, program: p, id: server.RequestID(c)}, key)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return server.Encode(c, execution.MediaJSON, a.write)
}

// answerIdempotent runs the program of a request that its client calls key,
// unless one of that key has done so or does: then it returns that one's answer,
// if it was the same request.
func (r *Receiver) answerIdempotent(ctx context.Context, x *request, key string) (*answer, error) {
	sum := sha256.Sum256(x.event.Data())
	x.key, x.fingerprint = sha256.Sum256([]byte("idempotency key "+key)), hex.EncodeToString(sum[:])
	x.event.SetExtension(extensionRequest, x.fingerprint)
	return r.deliveries.once(ctx, x.key, x.fingerprint, func() (*answer, bool, error) { return r.answerOnce(ctx, x) })
}

// otherRequest is the answer to a request under the key of another one.
func otherRequest() *execution.Problem {
	return execution.Invalid(execution.HeaderIdempotencyKey, "Another request has come with this key. Nothing was run.")
}
