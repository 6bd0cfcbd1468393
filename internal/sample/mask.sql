-- What may leave production of the sample shop: nobody's name, address or
-- card, nobody's salary. Orders and figures stay, so that it behaves the same.

UPDATE customers SET
  name     = 'Customer ' || id,
  email    = 'customer' || id || '@example.test',
  phone    = CASE WHEN phone IS NULL THEN NULL ELSE '+1 555 0100' END,
  street   = id || ' Sample Street',
  birthday = substr(birthday, 1, 4) || '-01-01',
  card     = NULL;

UPDATE staff SET name = 'Colleague ' || id, email = 'staff' || id || '@example.test', salary = 50000;

UPDATE orders SET note = NULL;
