-- Removes the personal data of the sample shop: names, addresses, payment cards
-- and salaries. Orders and figures stay, so that the shop behaves as before.

UPDATE customers SET
  name     = 'Customer ' || id,
  email    = 'customer' || id || '@example.test',
  phone    = CASE WHEN phone IS NULL THEN NULL ELSE '+1 555 0100' END,
  street   = id || ' Sample Street',
  birthday = substr(birthday, 1, 4) || '-01-01',
  card     = NULL;

UPDATE staff SET name = 'Colleague ' || id, email = 'staff' || id || '@example.test', salary = 50000;

UPDATE orders SET note = NULL;
