INSERT INTO parcels (id, ts, tags) VALUES (1, '2024-01-01', 'a,b')
