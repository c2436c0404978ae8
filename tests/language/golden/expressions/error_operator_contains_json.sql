SELECT * FROM flights WHERE payload @> '{"a": 1}'
