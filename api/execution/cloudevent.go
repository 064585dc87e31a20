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

// Media types of the HTTP binding.
const (
	MediaJSON       = "application/json"
	MediaProblem    = "application/problem+json"
	MediaSSE        = "text/event-stream"
	MediaCloudEvent = "application/cloudevents+json"
)
