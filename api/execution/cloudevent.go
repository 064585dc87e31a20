package execution

// CloudEvents attributes of an execution as an event.
const (
	// TypeRequested carries a Request.
	TypeRequested = "dev.preheat.execution.requested"
	// TypeCompleted carries a Result and answers a TypeRequested.
	TypeCompleted = "dev.preheat.execution.completed"
	// ExtensionCausationID names, on a TypeCompleted, the id of its request.
	ExtensionCausationID = "causationid"
)

// HeaderDelivery with the value DeliveryDirect says that whoever sends an event
// over HTTP waits for the answer itself and sends it once: the answer is not cut
// to what brokers take, and not kept for another delivery. It is no attribute,
// so that no event which a broker delivers can have it.
const (
	HeaderDelivery = "Preheat-Delivery"
	DeliveryDirect = "direct"
)

const (
	// HeaderIdempotencyKey is what a client calls a request that it may send
	// again: its program runs once.
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderLastEventID is of a client that lost its stream and asks for the
	// rest, which is not kept.
	HeaderLastEventID = "Last-Event-ID"
)

// Media types of the HTTP binding.
const (
	MediaJSON       = "application/json"
	MediaProblem    = "application/problem+json"
	MediaSSE        = "text/event-stream"
	MediaCloudEvent = "application/cloudevents+json"
	MediaTar        = "application/x-tar"
)
