package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"snap/internal/schema"
)

// shadowRoot returns the root page of the shadow table of t with this suffix.
func (b *builder) shadowRoot(t schema.Table, suffix string) (int64, error) {
	e, err := b.entry(t.Name.Name)
	if err != nil {
		return 0, err
	}
	if !e.isVirtual() || !strings.EqualFold(b.catalog.virtual[strings.ToLower(e.name)], t.Virtual) {
		return 0, damaged(fmt.Sprintf("the virtual table %q does not match its description", t.Name.Name), nil)
	}
	shadow, err := b.entry(t.Name.Name + suffix)
	if err != nil {
		return 0, damaged(fmt.Sprintf("the table %q is missing", t.Name.Name+suffix), nil)
	}
	return shadow.root, nil
}

// fillSearch fills a full-text table with the strings that it stores. If another table stores the
// strings, fillSearch builds the index from that table.
func (b *builder) fillSearch(ctx context.Context, t schema.Table) error {
	if t.Options["content"] != "" {
		return b.run(ctx, fmt.Sprintf("INSERT INTO %[1]s(%[1]s) VALUES ('rebuild')", quote(t.Name.Name)))
	}
	root, err := b.shadowRoot(t, "_content")
	if err != nil {
		return err
	}
	l := layout{rowid: "rowid", alias: 0, stored: len(t.Columns) + 1}
	for i, c := range t.Columns {
		l.insert, l.columns = append(l.insert, i+1), append(l.columns, c.Name)
	}
	return b.copyRows(ctx, t.Name.Name, root, l)
}

// fillTree fills an r-tree. The rows are in the leaf nodes, which are not parents of other nodes.
func (b *builder) fillTree(ctx context.Context, t schema.Table) error {
	parents, err := b.parents(t)
	if err != nil {
		return err
	}
	root, err := b.shadowRoot(t, "_node")
	if err != nil {
		return err
	}
	n := coordinates(t)
	names := make([]string, n+1)
	for i := range names {
		names[i] = quote(t.Columns[i].Name)
	}
	insert := "INSERT INTO " + quote(t.Name.Name) + " (" + strings.Join(names, ",") + ") VALUES (?" +
		strings.Repeat(",?", n) + ")"
	err = b.file.Rows(uint32(root), func(number int64, payload []byte) error {
		if parents[number] {
			return nil
		}
		return b.insertLeaf(ctx, insert, n, payload)
	})
	if err != nil || n+1 == len(t.Columns) {
		return err
	}
	return b.setAuxiliary(ctx, t, n)
}

// parents returns the inner nodes of an r-tree.
func (b *builder) parents(t schema.Table) (map[int64]bool, error) {
	root, err := b.shadowRoot(t, "_parent")
	if err != nil {
		return nil, err
	}
	parents := map[int64]bool{}
	return parents, b.file.Rows(uint32(root), func(_ int64, payload []byte) error {
		values, err := b.file.Values(nil, payload, 2)
		if err == nil && len(values) == 2 {
			if parent, ok := values[1].(int64); ok && len(parents) < 1<<20 {
				parents[parent] = true
			}
		}
		return err
	})
}

// insertLeaf inserts the rows of a leaf. n is the number of coordinates. The leaf starts with four
// bytes, the last two of which are the number of rows. A row has eight bytes for its rowid and four
// for each coordinate.
func (b *builder) insertLeaf(ctx context.Context, insert string, n int, payload []byte) error {
	values, err := b.file.Values(nil, payload, 2)
	if err != nil {
		return err
	}
	var data []byte
	if len(values) == 2 {
		data, _ = values[1].([]byte)
	}
	if len(data) < 4 || len(data) < 4+int(binary.BigEndian.Uint16(data[2:]))*(8+4*n) {
		return damaged("a node of an r-tree is truncated", nil)
	}
	args := make([]any, n+1)
	for i := range int(binary.BigEndian.Uint16(data[2:])) {
		cell := data[4+i*(8+4*n):]
		args[0] = int64(binary.BigEndian.Uint64(cell))
		for j := range n {
			args[j+1] = float64(math.Float32frombits(binary.BigEndian.Uint32(cell[8+4*j:])))
		}
		if _, err := b.conn.ExecContext(ctx, insert, args...); err != nil {
			return err
		}
	}
	return nil
}

// setAuxiliary sets the columns of an r-tree that are not coordinates.
func (b *builder) setAuxiliary(ctx context.Context, t schema.Table, n int) error {
	root, err := b.shadowRoot(t, "_rowid")
	if err != nil {
		return err
	}
	var sets []string
	for _, c := range t.Columns[n+1:] {
		sets = append(sets, quote(c.Name)+" = ?")
	}
	update := "UPDATE " + quote(t.Name.Name) + " SET " + strings.Join(sets, ", ") + " WHERE " +
		quote(t.Columns[0].Name) + " = ?"
	return b.file.Rows(uint32(root), func(rowid int64, payload []byte) error {
		values, err := b.file.Values(nil, payload, len(sets)+2)
		if err != nil || len(values) != len(sets)+2 {
			return err
		}
		_, err = b.conn.ExecContext(ctx, update, append(values[2:], rowid)...)
		return err
	})
}
