package transfer

import "sync"

// window is the intended memory of a download in bytes: for each connection, the piece that is
// being fetched and one that is being written and hashed. Garbage that is not yet collected can
// double this amount.
const window = 48 << 20

// minPiece is the minimum size of a piece in bytes. Only the last piece of a file can be smaller.
const minPiece = 1 << 20

// pieceSize returns the number of bytes per request. It is as large as the window allows, because
// each request costs an access check and two round trips, but small enough that every connection
// gets two pieces of a small snapshot. The piece size limits how many bytes arrive after access has
// ended, and how many are lost if a process is killed.
func pieceSize(total int64, jobs int) int64 {
	fair := min(total, window) / int64(2*jobs)
	return max(minPiece, fair-fair%minPiece)
}

// pieces tracks which pieces of a download are missing, being fetched or received. Pieces are
// numbered from 0.
type pieces struct {
	mu     sync.Mutex
	change sync.Cond
	state  []pieceState
	crc    []uint64 // checksums of the received pieces
	first  int      // no piece before it is missing
	wanted int      // the piece that is awaited or being hashed
	over   bool

	jobs    int            // maximum number of concurrent fetches
	busy    int            // current number of fetches
	content map[int][]byte // content of received pieces that are not hashed yet
}

type pieceState uint8

const (
	missing pieceState = iota
	fetching
	received
)

func newPieces(count, jobs int, have map[int]uint64) *pieces {
	p := &pieces{state: make([]pieceState, count), crc: make([]uint64, count), jobs: jobs, content: map[int][]byte{}}
	p.change.L = &p.mu
	for n, crc := range have {
		if n >= 0 && n < count {
			p.state[n], p.crc[n] = received, crc
		}
	}
	return p
}

// next returns the first missing piece. It blocks while none is missing, because a piece may still
// turn out to be bad. It also blocks while the maximum number is being fetched. It returns false
// when the download is over.
func (p *pieces) next() (n int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		for ; p.busy < p.jobs && p.first < len(p.state); p.first++ {
			if p.state[p.first] == missing {
				p.state[p.first] = fetching
				p.busy++
				return p.first, true
			}
		}
		p.change.Wait()
	}
	return 0, false
}

// arrive records that a piece was received, and makes its content available to await until leave
// returns.
func (p *pieces) arrive(n int, crc uint64, content []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[n], p.crc[n], p.content[n] = received, crc, content
	p.busy--
	p.change.Broadcast()
}

// leave blocks until the content of a piece has been hashed. The content is already on the disk. If
// the next piece to hash has not arrived and more than p.jobs pieces are in memory, leave discards
// the content instead of blocking, and it is later read from the disk. This keeps connections from
// waiting for each other.
func (p *pieces) leave(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.content[n] != nil && !p.over {
		if p.state[p.wanted] != received && len(p.content) > p.jobs {
			delete(p.content, n)
			return
		}
		p.change.Wait()
	}
}

// markMissing marks a piece as missing because its bytes on the disk differ from those that were
// received.
func (p *pieces) markMissing(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[n] = missing
	p.first = min(p.first, n)
	p.change.Broadcast()
}

// await blocks until a piece is received. It returns the piece's checksum, and its content if that
// is still in memory. A caller that gets the content must call hashed. It returns false if the
// download ends first.
func (p *pieces) await(n int) (crc uint64, content []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = n
	p.change.Broadcast()
	for !p.over {
		if p.state[n] == received {
			return p.crc[n], p.content[n], true
		}
		p.change.Wait()
	}
	return 0, nil, false
}

// hashed frees the content of a piece.
func (p *pieces) hashed(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.content, n)
	p.change.Broadcast()
}

// end ends the download and wakes all waiters.
func (p *pieces) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.change.Broadcast()
}
