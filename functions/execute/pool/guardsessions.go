package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// ErrContract is of a caller or a pool that breaks the contract of sessions.
var ErrContract = errors.New("the contract of sessions is broken")

// GuardSessions returns s with both sides held to the contract: no session is
// opened without an id, an end and a language, none is handed out under
// another one's id (I13), and no path that leaves a session's folder reaches a
// sandbox.
func GuardSessions(s Sessions) Sessions { return guardSessions{s} }

// keeper is Sessions under a name that none of its methods has.
type keeper interface{ Sessions }

type guardSessions struct{ keeper }

// OpenSession implements Sessions.
func (g guardSessions) OpenSession(ctx context.Context, want SessionClaim) (Session, error) {
	switch {
	case !execution.IsSessionID(want.Session):
		return nil, fmt.Errorf("%w: an id that is none", ErrContract)
	case want.Idle <= 0 || !want.Deadline.After(time.Now()):
		return nil, fmt.Errorf("%w: a session without a time to live", ErrContract)
	case want.Event != "":
		return nil, fmt.Errorf("%w: an event opens no session", ErrContract)
	}
	for _, f := range want.Files {
		if err := checkPath(f.Path, false); err != nil {
			return nil, err
		}
	}
	return checked(want.Session)(g.keeper.OpenSession(ctx, want))
}

// Session implements Sessions.
func (g guardSessions) Session(ctx context.Context, id string) (Session, error) {
	if !execution.IsSessionID(id) {
		return nil, ErrNoSession
	}
	return checked(id)(g.keeper.Session(ctx, id))
}

// EndSession implements Sessions.
func (g guardSessions) EndSession(ctx context.Context, id string) error {
	if !execution.IsSessionID(id) {
		return ErrNoSession
	}
	return g.keeper.EndSession(ctx, id)
}

// checked guards a session that must have this id.
func checked(id string) func(Session, error) (Session, error) {
	return func(s Session, err error) (Session, error) {
		switch {
		case err != nil:
			return nil, err
		case s.Info().ID != id:
			return nil, fmt.Errorf("%w: the pool returned another session", ErrContract)
		}
		return guardedSession{s}, nil
	}
}

type guardedSession struct{ Session }

// Run implements Session.
func (g guardedSession) Run(ctx context.Context, id string, run Run, sink Sink) (SessionOutcome, error) {
	for _, f := range run.Files {
		if err := checkPath(f.Path, false); err != nil {
			return SessionOutcome{}, err
		}
	}
	return g.Session.Run(ctx, id, run, sink)
}

// Open implements Session.
func (g guardedSession) Open(ctx context.Context, path string, offset, length int64) (SessionFile, io.ReadCloser, error) {
	if err := checkPath(path, false); err != nil {
		return SessionFile{}, nil, err
	}
	return g.Session.Open(ctx, path, offset, length)
}

// Archive implements Session.
func (g guardedSession) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	if err := checkPath(path, true); err != nil {
		return nil, err
	}
	return g.Session.Archive(ctx, path)
}

// Write implements Session.
func (g guardedSession) Write(ctx context.Context, path string, content io.Reader) (SessionFile, bool, error) {
	if err := checkPath(path, false); err != nil {
		return SessionFile{}, false, err
	}
	return g.Session.Write(ctx, path, content)
}

// Remove implements Session.
func (g guardedSession) Remove(ctx context.Context, path string) error {
	if err := checkPath(path, false); err != nil {
		return err
	}
	return g.Session.Remove(ctx, path)
}

func checkPath(path string, root bool) error {
	if problem := execution.CheckSessionPath(path, root); problem != nil {
		return problem
	}
	return nil
}
