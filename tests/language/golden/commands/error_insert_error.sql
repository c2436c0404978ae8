INSERT INTO parcels (id, ts) VALUES (1 / 0, '2024-01-01')
