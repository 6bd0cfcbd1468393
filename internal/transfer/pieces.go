package transfer

import (
	"context"
	"sync"
)

// window is how much of a download is in memory: for each connection the piece
// that it fetches, and one that is being written and hashed. The collector of
// garbage may let as much again come together.
const window = 48 << 20

// leastPiece is the least that one request fetches.
const leastPiece = 1 << 20

// pieceSize returns how much one request fetches of a snapshot: as much as the
// window lets it, because each request costs a check of the right and two round
// trips, but so that every connection has two pieces of a small snapshot. It
// bounds how much still arrives after the right has ended, and how much is lost
// when a process is killed.
func pieceSize(total int64, jobs int) int64 {
	fair := min(total, window) / int64(2*jobs)
	return max(leastPiece, fair-fair%leastPiece)
}

// pieces is which pieces of a download are missing, being fetched and had.
// Pieces count from 0.
type pieces struct {
	mu     sync.Mutex
	change sync.Cond
	state  []pieceState
	crc    []uint64
	first  int // no piece before it is missing
	wanted int // the piece that is awaited, or hashed now
	over   bool

	jobs    int            // how many are fetched at once
	busy    int            // how many are fetched now
	content map[int][]byte // of pieces that have come and are not hashed yet
}

type pieceState uint8

const (
	missing pieceState = iota
	fetching
	had
)

func newPieces(count, jobs int, have map[int]uint64) *pieces {
	p := &pieces{state: make([]pieceState, count), crc: make([]uint64, count), jobs: jobs, content: map[int][]byte{}}
	p.change.L = &p.mu
	for n, crc := range have {
		if n >= 0 && n < count {
			p.state[n], p.crc[n] = had, crc
		}
	}
	return p
}

// next returns a piece to fetch: the first that is missing. It waits while
// there is none, because one may turn out bad, and while enough are being
// fetched. It reports false when the download is over.
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

// arrive tells that a piece has come, and lets await have its content until
// leave returns.
func (p *pieces) arrive(n int, crc uint64, content []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[n], p.crc[n], p.content[n] = had, crc, content
	p.busy--
	p.change.Broadcast()
}

// leave waits until the content of a piece, which is on the disk now, has been
// hashed. If that is because the awaited piece has not come, and many wait, it
// takes the content back, to be read from the disk later, so that no connection
// waits for another.
func (p *pieces) leave(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.content[n] != nil && !p.over {
		if p.state[p.wanted] != had && len(p.content) > p.jobs {
			delete(p.content, n)
			return
		}
		p.change.Wait()
	}
}

// miss gives up a piece that is not what came.
func (p *pieces) miss(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[n] = missing
	p.first = min(p.first, n)
	p.change.Broadcast()
}

// await waits until a piece is had and returns its checksum, and its content if
// that is in memory, which is then to be told when it is hashed. It reports
// false when the download is over before.
func (p *pieces) await(n int) (crc uint64, content []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = n
	p.change.Broadcast()
	for !p.over {
		if p.state[n] == had {
			return p.crc[n], p.content[n], true
		}
		p.change.Wait()
	}
	return 0, nil, false
}

// hashed tells that the content of a piece is not needed any more.
func (p *pieces) hashed(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.content, n)
	p.change.Broadcast()
}

// end wakes everyone who waits.
func (p *pieces) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.change.Broadcast()
}

// endWith ends the download with its context.
func (p *pieces) endWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, p.end)
}
