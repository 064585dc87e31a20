package runner

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/runner/capture"
	"github.com/preheat-dev/preheat/functions/runner/wire"
)

// drainTime bounds the wait for the ends of the pipes of dead processes.
const drainTime = 200 * time.Millisecond

// streams reads everything that a program writes, each pipe in a goroutine of
// its own, until finish.
type streams struct {
	server *wire.Server
	limits wire.Limits
	// exceeded is closed when a stream passes the total output limit.
	exceeded chan struct{}
	once     sync.Once
	wg       sync.WaitGroup

	truncated execution.Truncated // complete after finish
	notes     []string            // of the results' goroutine, until finish
}

// watch starts to feed the program and to read its output.
func watch(server *wire.Server, in *interpreter, run wire.Run) *streams {
	s := &streams{server: server, limits: run.Limits, exceeded: make(chan struct{})}
	s.wg.Go(func() {
		_, _ = in.stdin.Write(run.Stdin) // a program need not read it
		_ = in.stdin.Close()
	})
	s.wg.Go(func() { s.truncated.Stdout = s.output(execution.Stdout, pipeReader{in.stdout}) })
	s.wg.Go(func() { s.truncated.Stderr = s.output(execution.Stderr, pipeReader{in.stderr}) })
	if in.lang.Rich {
		s.wg.Go(func() { s.results(pipeReader{in.results}) })
	}
	return s
}

// finish waits for what is still in the pipes. Every process is dead by now,
// so that the pipes are at their ends; the deadline is for a descriptor that
// got lost in a message between sockets.
func (s *streams) finish(in *interpreter) execution.Truncated {
	_ = in.stdin.Close()
	for _, f := range []*os.File{in.stdout, in.stderr, in.results} {
		if f != nil {
			_ = f.SetReadDeadline(time.Now())
		}
	}
	s.wg.Wait()
	return s.truncated
}

// pipeReader reads a pipe to its end. Once a deadline has been set, it takes a
// pipe that stays empty for drainTime to be at its end as well, but never
// leaves bytes in it.
type pipeReader struct{ *os.File }

func (r pipeReader) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = r.SetReadDeadline(time.Now().Add(drainTime))
		n, err = r.File.Read(p)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = io.EOF
		}
	}
	return n, err
}

// output passes one stream on within the limits. It reads on beyond them, so
// that the program never blocks on a full pipe.
func (s *streams) output(stream execution.Stream, from io.Reader) execution.StreamTruncation {
	c := capture.New(s.limits.Output, func(data []byte, skipped int64) {
		// The exit report fails for the same reason as this.
		_ = s.server.Output(stream, data, skipped)
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		_, _ = c.Write(buf[:n])
		if c.Total() > s.limits.TotalOutput {
			s.once.Do(func() { close(s.exceeded) })
		}
		if err != nil {
			return c.Close()
		}
	}
}

// results passes rich results on. The program can write to this pipe as well
// as its harness can, so that nothing in it is trusted.
func (s *streams) results(from io.Reader) {
	r := bufio.NewReader(from)
	left, count, missed := s.limits.ResultBytes, 0, 0
	for {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			break
		}
		size := int64(binary.BigEndian.Uint32(head[:]))
		if size > left || count == s.limits.Results {
			missed++
			if _, err := io.CopyN(io.Discard, r, size); err != nil {
				break
			}
			continue
		}
		mime, ok := readMIME(r, size)
		if !ok {
			s.notes = append(s.notes, "a rich result is malformed; those after it are left out")
			_, _ = io.Copy(io.Discard, r)
			break
		}
		left -= size
		count++
		if errors.Is(s.server.Result(mime, r, size-int64(len(mime))-1), io.ErrUnexpectedEOF) {
			s.notes = append(s.notes, "a rich result is incomplete and left out")
		}
	}
	if missed > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d rich result(s) are left out: they exceed the limits", missed))
	}
}

// maxMIME bounds the name of a media type.
const maxMIME = 100

// readMIME reads the media type that a record of size bytes begins with, and
// the NUL after it.
func readMIME(r *bufio.Reader, size int64) (string, bool) {
	var mime []byte
	for range min(size, maxMIME+1) {
		b, err := r.ReadByte()
		switch {
		case err != nil:
			return "", false
		case b == 0:
			return string(mime), len(mime) > 0 && isToken(mime)
		}
		mime = append(mime, b)
	}
	return "", false
}

// isToken reports whether a MIME type has only characters that RFC 9110 allows
// in one without parameters.
func isToken(mime []byte) bool {
	for _, b := range mime {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("/+-._!#$&^", b) >= 0:
		default:
			return false
		}
	}
	return true
}
