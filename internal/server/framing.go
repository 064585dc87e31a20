package server

import "errors"

var (
	errChunk    = errors.New("a chunk of the body is malformed")
	errTooLarge = errors.New("the chunks of the body exceed the limit")
)

// framing follows a request's body just as far as its end, which is where the
// next head begins. The zero value is a request without a body.
type framing struct {
	state frameState
	// left is what remains of a body of fixed length, or of a chunk.
	left int64
	// announced is the size of all chunks so far.
	announced int64
	// length counts the bytes of a chunk's line, or of the trailer section.
	length int
	digits int
}

type frameState int

const (
	frameDone frameState = iota
	frameFixed
	frameSize      // the digits of a chunk's size
	frameExtension // a chunk's extension
	frameSizeLF
	frameData
	frameDataCR
	frameDataLF
	frameTrailer // the begin of a line after the last chunk
	frameField   // a line of the trailer section
	frameFieldLF
	frameLastLF
	frameBroken
)

const (
	maxChunkLine = 4 << 10
	maxTrailer   = 4 << 10
	maxSizeHex   = 15
)

func fixed(n int64) framing {
	if n == 0 {
		return framing{}
	}
	return framing{state: frameFixed, left: n}
}

func chunked() framing { return framing{state: frameSize} }

func (f *framing) done() bool { return f.state == frameDone }

// advance returns how many bytes at the begin of b belong to the body. After
// an error it takes none.
func (f *framing) advance(b []byte) (int, error) {
	i := 0
	for i < len(b) && !f.done() {
		switch f.state {
		case frameFixed, frameData:
			n := min(int64(len(b)-i), f.left)
			i += int(n)
			if f.left -= n; f.left > 0 {
				continue
			}
			if f.state == frameFixed {
				f.state = frameDone
			} else {
				f.state = frameDataCR
			}
		default:
			if !f.step(b[i]) {
				f.state = frameBroken
				return i, errChunk
			}
			i++
		}
	}
	return i, nil
}

// step takes one byte that is no data.
func (f *framing) step(b byte) bool {
	switch f.state {
	case frameSize, frameExtension, frameSizeLF:
		return f.sizeLine(b)
	case frameDataCR:
		f.state = frameDataLF
		return b == '\r'
	case frameDataLF:
		*f = framing{state: frameSize, announced: f.announced}
		return b == '\n'
	case frameTrailer, frameField, frameFieldLF, frameLastLF:
		return f.trailer(b)
	}
	return false
}

func (f *framing) sizeLine(b byte) bool {
	if f.length++; f.length > maxChunkLine {
		return false
	}
	if f.state == frameSizeLF {
		f.length, f.announced = 0, f.announced+f.left
		if f.state = frameData; f.left == 0 {
			f.state = frameTrailer
		}
		return b == '\n'
	}
	if h := hex(b); f.state == frameSize && h >= 0 {
		f.digits++
		f.left = f.left<<4 | int64(h)
		return f.digits <= maxSizeHex
	}
	switch {
	case f.digits == 0:
		return false
	case b == '\r':
		f.state = frameSizeLF
		return true
	case f.state == frameExtension:
		return b == '\t' || b >= ' ' && b != 0x7f
	case b == ';':
		f.state = frameExtension
		return true
	}
	return false
}

func (f *framing) trailer(b byte) bool {
	if f.length++; f.length > maxTrailer {
		return false
	}
	switch f.state {
	case frameLastLF:
		f.state = frameDone
		return b == '\n'
	case frameFieldLF:
		f.state = frameTrailer
		return b == '\n'
	}
	if b == '\r' {
		if f.state == frameTrailer {
			f.state = frameLastLF
		} else {
			f.state = frameFieldLF
		}
		return true
	}
	f.state = frameField
	return b == '\t' || b >= ' ' && b != 0x7f
}

func hex(b byte) int {
	switch {
	case digit(b):
		return int(b - '0')
	case b|0x20 >= 'a' && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	}
	return -1
}
