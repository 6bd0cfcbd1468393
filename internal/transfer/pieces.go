package transfer

import (
	"context"
	"sync"
)

// window is how much of a download is in memory: for each connection the piece
// that it fetches and one that waits to be hashed.
const window = 64 << 20

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

// pieces is which pieces of a download are missing, being fetched and landed.
// Pieces count from 0.
type pieces struct {
	mu     sync.Mutex
	change sync.Cond
	state  []pieceState
	crc    []uint64
	first  int // no piece before it is missing
	wanted int // the piece that is awaited, or hashed now
	over   bool

	content map[int][]byte // of landed pieces that are not hashed yet
	keep    int            // how many of them at most, besides the one that is awaited
}

type pieceState uint8

const (
	missing pieceState = iota
	fetching
	landed
)

func newPieces(count, keep int, have map[int]uint64) *pieces {
	p := &pieces{state: make([]pieceState, count), crc: make([]uint64, count), content: map[int][]byte{}, keep: keep}
	p.change.L = &p.mu
	for n, crc := range have {
		if n >= 0 && n < count {
			p.state[n], p.crc[n] = landed, crc
		}
	}
	return p
}

// next returns a piece to fetch: the first that is missing. It waits while
// there is none, because a landed one may turn out bad, and reports false when
// the download is over.
func (p *pieces) next() (n int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		for ; p.first < len(p.state); p.first++ {
			if p.state[p.first] == missing {
				p.state[p.first] = fetching
				return p.first, true
			}
		}
		p.change.Wait()
	}
	return 0, false
}

// land tells that a piece is on the disk, and keeps its content for await, so
// that it need not be read again. When enough is kept it waits for the hash, if
// that is what is slow; if the awaited piece has not come yet, it reports that
// it did not keep the content, so that no connection waits for another.
func (p *pieces) land(n int, crc uint64, content []byte) (kept bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n != p.wanted && len(p.content) >= p.keep && p.state[p.wanted] == landed && !p.over {
		p.change.Wait()
	}
	p.state[n], p.crc[n] = landed, crc
	if n == p.wanted || len(p.content) < p.keep {
		p.content[n] = content
		kept = true
	}
	p.change.Broadcast()
	return kept
}

// miss gives up a piece that is not what landed.
func (p *pieces) miss(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[n] = missing
	p.first = min(p.first, n)
	p.change.Broadcast()
}

// await waits until a piece has landed and returns its checksum, and its
// content if that was kept. It reports false when the download is over before.
func (p *pieces) await(n int) (crc uint64, content []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = n
	p.change.Broadcast()
	for !p.over {
		if p.state[n] == landed {
			content = p.content[n]
			delete(p.content, n)
			p.change.Broadcast()
			return p.crc[n], content, true
		}
		p.change.Wait()
	}
	return 0, nil, false
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
