INSERT INTO parcels VALUES (1 + 1, ARRAY['a', 'b'], '[1, 2.5]', MAP['a', 'b'], '[{"city": "x"}]', JSON_OBJECT('a', 1), TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1' DAY)
