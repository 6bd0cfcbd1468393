-- A shop with the features of real databases: keys, checks, indexes of several
-- kinds, a table without rowid, a strict table, a view and triggers.

CREATE TABLE staff (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  email      TEXT NOT NULL UNIQUE,
  job        TEXT NOT NULL,
  manager_id INTEGER REFERENCES staff (id),
  hired_on   TEXT NOT NULL,
  salary     INTEGER NOT NULL CHECK (salary > 0)
);

CREATE TABLE customers (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  email      TEXT NOT NULL UNIQUE,
  phone      TEXT,
  street     TEXT NOT NULL,
  city       TEXT NOT NULL,
  country    TEXT NOT NULL,
  birthday   TEXT,
  card       TEXT,
  joined_at  TEXT NOT NULL,
  staff_id   INTEGER REFERENCES staff (id)
);
CREATE INDEX customers_by_country ON customers (country, city);
CREATE INDEX customers_by_lower_name ON customers (lower(name));

CREATE TABLE products (
  id          INTEGER PRIMARY KEY,
  sku         TEXT NOT NULL UNIQUE,
  name        TEXT NOT NULL,
  category    TEXT NOT NULL,
  price       REAL NOT NULL CHECK (price >= 0),
  weight      REAL,
  description TEXT,
  photo       BLOB
) STRICT;
CREATE INDEX products_by_category ON products (category, price);

CREATE TABLE orders (
  id          INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
  staff_id    INTEGER REFERENCES staff (id) ON DELETE SET NULL,
  status      TEXT NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'paid', 'sent', 'returned')),
  placed_at   TEXT NOT NULL,
  sent_at     TEXT,
  note        TEXT
);
CREATE INDEX orders_by_customer ON orders (customer_id, placed_at DESC);
CREATE INDEX orders_open ON orders (placed_at) WHERE status IN ('new', 'paid');

CREATE TABLE order_lines (
  order_id   INTEGER NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  line       INTEGER NOT NULL,
  product_id INTEGER NOT NULL REFERENCES products (id),
  quantity   INTEGER NOT NULL CHECK (quantity > 0),
  price      REAL NOT NULL,
  PRIMARY KEY (order_id, line)
) WITHOUT ROWID;
CREATE INDEX order_lines_by_product ON order_lines (product_id);

CREATE TABLE order_events (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  order_id INTEGER NOT NULL REFERENCES orders (id) ON DELETE CASCADE,
  status   TEXT NOT NULL
);

CREATE VIEW order_totals AS
  SELECT o.id, o.customer_id, c.name AS customer, o.placed_at, sum(l.quantity * l.price) AS total
  FROM orders o JOIN customers c ON c.id = o.customer_id JOIN order_lines l ON l.order_id = o.id
  GROUP BY o.id;

CREATE TRIGGER orders_status AFTER UPDATE OF status ON orders WHEN new.status <> old.status
BEGIN
  INSERT INTO order_events (order_id, status) VALUES (new.id, new.status);
END;
