package capture

// ring keeps the last size bytes that were written to it. Its memory grows
// with what is written, up to size.
type ring struct {
	size  int
	buf   []byte
	start int // index of the oldest byte once buf is full
}

func (r *ring) write(p []byte) {
	if len(p) > r.size {
		p = p[len(p)-r.size:]
	}
	if free := r.size - len(r.buf); free > 0 {
		n := min(free, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.start:], p)
		p = p[n:]
		r.start = (r.start + n) % r.size
	}
}

// bytes returns what is kept, oldest first.
func (r *ring) bytes() []byte {
	return append(append(make([]byte, 0, len(r.buf)), r.buf[r.start:]...), r.buf[:r.start]...)
}
