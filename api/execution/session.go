package execution

// SessionState says what a run in a session had of the runs before it, and what
// it leaves to the next.
type SessionState string

// The states of a session's interpreter.
const (
	// SessionFresh: the run began in a new interpreter, which goes on.
	SessionFresh SessionState = "fresh"
	// SessionKept: it ran where the runs before it did, and everything is kept.
	SessionKept SessionState = "kept"
	// SessionLost: the interpreter ended with this run. The files stay; the next
	// run begins in a new interpreter.
	SessionLost SessionState = "lost"
)

// SessionEnd says why a session is over.
type SessionEnd string

// The ends of sessions.
const (
	// SessionClosed: its caller ended it.
	SessionClosed SessionEnd = "closed"
	// SessionIdle: it was not used for as long as it stays idle.
	SessionIdle SessionEnd = "idle"
	// SessionExpired: its lifetime was over.
	SessionExpired SessionEnd = "expired"
	// SessionSandboxLost: its sandbox ended by itself: a node, a container or a
	// memory limit took it away.
	SessionSandboxLost SessionEnd = "sandbox_lost"
	// SessionShutdown: the server that held it was shut down.
	SessionShutdown SessionEnd = "shutdown"
)
