package execute

import "github.com/preheat-dev/preheat/functions/execute/pool"

// Errors about events that may be delivered again.
var (
	// ErrDelivered: the event has been, or is being, run by another delivery.
	ErrDelivered = pool.ErrDelivered
	// ErrInterrupted: the event's program has begun, and nobody knows what
	// came of it.
	ErrInterrupted = pool.ErrInterrupted
	// ErrAnswerDropped: the event has been answered, and its answer is gone.
	ErrAnswerDropped = pool.ErrAnswerDropped
	// ErrTooLarge: an answer exceeds what the record of an event holds.
	ErrTooLarge = pool.ErrTooLarge
	// ErrUnavailable: what is recorded of events cannot be read for now.
	ErrUnavailable = pool.ErrClosed
)

// TooLargeError is an ErrTooLarge that says by how much.
type TooLargeError = pool.TooLargeError
