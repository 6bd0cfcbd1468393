package sample

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/brianvoe/gofakeit/v7"
)

// generator writes the tables in the order of their references.
type generator struct {
	o      Options
	tx     *sql.Tx
	rand   *rand.Rand
	fake   *gofakeit.Faker
	now    time.Time // the latest time in the data; never the real time
	rows   int
	prices []float64 // by product
}

// all creates the tables and writes all rows.
func (g *generator) all(ctx context.Context) error {
	if _, err := g.tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{g.staff, g.customers, g.products, g.orders, g.events} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// insert prepares the statement that adds rows with the given number of columns to a table. done
// closes it.
func (g *generator) insert(ctx context.Context, table string, columns int) (add func(values ...any) error, done func(),
	err error) {
	marks := strings.TrimSuffix(strings.Repeat("?,", columns), ",")
	stmt, err := g.tx.PrepareContext(ctx, "INSERT INTO "+table+" VALUES ("+marks+")")
	if err != nil {
		return nil, nil, err
	}
	add = func(values ...any) error {
		g.rows++
		_, err := stmt.ExecContext(ctx, values...)
		return err
	}
	return add, func() { stmt.Close() }, nil
}

func (g *generator) staff(ctx context.Context) error {
	add, done, err := g.insert(ctx, "staff", 7)
	if err != nil {
		return err
	}
	defer done()
	for id := 1; id <= g.o.Staff; id++ {
		name := g.name()
		var manager any
		if id > 1 {
			manager = 1 + g.rand.IntN((id+3)/4)
		}
		hired := g.now.AddDate(0, 0, -g.rand.IntN(5000))
		err := add(id, name, fmt.Sprintf("%s.%d@shop.example", handle(name), id), g.fake.JobTitle(), manager,
			hired.Format(time.DateOnly), 30_000+500*g.rand.IntN(200))
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) customers(ctx context.Context) error {
	add, done, err := g.insert(ctx, "customers", 11)
	if err != nil {
		return err
	}
	defer done()
	for id := 1; id <= g.o.Customers; id++ {
		name := g.name()
		born := g.now.AddDate(-18-g.rand.IntN(60), 0, -g.rand.IntN(365))
		err := add(id, name, fmt.Sprintf("%s.%d@%s", handle(name), id, g.pick(mailDomains)),
			g.maybe(80, g.fake.Phone), fmt.Sprintf("%d %s", 1+g.rand.IntN(199), g.fake.StreetName()),
			g.fake.City(), g.fake.CountryAbr(),
			g.maybe(60, func() string { return born.Format(time.DateOnly) }),
			g.maybe(70, func() string { return g.fake.DigitN(16) }),
			g.moment(2000), g.seller(50))
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) products(ctx context.Context) error {
	add, done, err := g.insert(ctx, "products", 8)
	if err != nil {
		return err
	}
	defer done()
	for id := 1; id <= g.o.Products; id++ {
		price := float64(99+g.rand.IntN(50_000)) / 100
		g.prices = append(g.prices, price)
		var weight, photo any
		if g.chance(70) {
			weight = float64(1+g.rand.IntN(9999)) / 1000
		}
		if g.chance(60) {
			photo = g.bytes(2000 + g.rand.IntN(8000))
		}
		err := add(id, fmt.Sprintf("%s-%05d", strings.ToUpper(g.fake.LetterN(3)), id), g.fake.ProductName(),
			g.fake.ProductCategory(), price, weight, g.maybe(85, g.fake.ProductDescription), photo)
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) orders(ctx context.Context) error {
	order, done, err := g.insert(ctx, "orders", 7)
	if err != nil {
		return err
	}
	defer done()
	line, linesDone, err := g.insert(ctx, "order_lines", 5)
	if err != nil {
		return err
	}
	defer linesDone()
	for id := 1; id <= g.o.Orders; id++ {
		// The product of two random numbers favors low IDs, so that some customers order far more
		// than others.
		customer := 1 + int(float64(g.o.Customers)*g.rand.Float64()*g.rand.Float64())
		status := g.pick([]string{"new", "paid", "sent", "sent", "sent", "sent", "returned"})
		var sent any
		if status == "sent" || status == "returned" {
			sent = g.moment(700)
		}
		if err := order(id, customer, g.seller(30), status, g.moment(700), sent, g.maybe(10, g.note)); err != nil {
			return err
		}
		for n := range 1 + g.rand.IntN(5) {
			product := g.rand.IntN(g.o.Products)
			if err := line(id, n+1, product+1, 1+g.rand.IntN(4), g.prices[product]); err != nil {
				return err
			}
		}
	}
	return nil
}

// events changes the status of some orders, so that the schema's trigger writes their history.
func (g *generator) events(ctx context.Context) error {
	if _, err := g.tx.ExecContext(ctx,
		"UPDATE orders SET status = 'paid' WHERE status = 'new' AND id % 3 = 0"); err != nil {
		return err
	}
	var events int
	if err := g.tx.QueryRowContext(ctx, "SELECT count(*) FROM order_events").Scan(&events); err != nil {
		return err
	}
	g.rows += events
	return nil
}

func (g *generator) chance(percent int) bool { return g.rand.IntN(100) < percent }

func (g *generator) pick(from []string) string { return from[g.rand.IntN(len(from))] }

// maybe returns a value with the given probability, and otherwise NULL.
func (g *generator) maybe(percent int, value func() string) any {
	if g.chance(percent) {
		return value()
	}
	return nil
}

// seller returns the ID of a staff member with the given probability, and otherwise NULL.
func (g *generator) seller(percent int) any {
	if g.chance(percent) {
		return 1 + g.rand.IntN(g.o.Staff)
	}
	return nil
}

// moment returns a random time within the given number of days before now.
func (g *generator) moment(days int) string {
	return g.now.Add(-time.Duration(g.rand.Int64N(int64(days) * int64(24*time.Hour)))).Format(time.RFC3339)
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.rand.Uint32())
	}
	return b
}

func (g *generator) note() string { return g.pick(notes) }

// name returns a person's name. One name in five is not plain ASCII.
func (g *generator) name() string {
	if g.chance(20) {
		return g.pick(givenNames) + " " + g.pick(familyNames)
	}
	return g.fake.FirstName() + " " + g.fake.LastName()
}
